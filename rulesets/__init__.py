"""The rewrite rules, one concern a file; `catalogue` lists them and says which run when."""

if __name__ != "pypto_egg.rulesets":
    raise ImportError("import this folder as pypto_egg.rulesets")
