"""Made-up e-graphs in families that are hard for extraction, small and large.

Each family has one difficulty: forms that convert into each other, cycles, a set cover, algebraic
laws, a library of shared functions. All are a function of their seed.
"""

from __future__ import annotations

import random
from collections.abc import Callable

import numpy as np

from pypto_egg.extract import Problem


class Builder:
    """Collects classes and nodes of a problem."""

    def __init__(self) -> None:
        self.owner: list[int] = []
        self.children: list[list[int]] = []
        self.cost: list[float] = []
        self.classes = 0

    def cls(self) -> int:
        """A new class."""
        self.classes += 1
        return self.classes - 1

    def node(self, cls: int, children: list[int], cost: float) -> None:
        """A new node of a class."""
        self.owner.append(cls)
        self.children.append(children)
        self.cost.append(cost)

    def problem(self, *roots: int) -> Problem:
        """The problem of what was collected."""
        return Problem(self.owner, self.children, np.array(self.cost), roots)


def layers(count: int, seed: int, forms: int = 3) -> Problem:
    """A chain of layers, each a tensor in several forms that convert into each other."""
    rng, g = random.Random(seed), Builder()
    source = g.cls()
    g.node(source, [], 1)
    before = [source]
    for _ in range(count):
        weights = [g.cls() for _ in range(forms)]
        for cls in weights:
            g.node(cls, [], rng.randint(5, 40))
        now = [g.cls() for _ in range(forms)]
        for cls in now:
            for _ in range(3):
                g.node(cls, [rng.choice(before), rng.choice(weights)], rng.randint(10, 60))
            for other in now:
                if other != cls:
                    g.node(cls, [other], rng.randint(2, 12))
        before = now
    root = g.cls()
    for cls in before:
        g.node(root, [cls], rng.randint(1, 9))
    return g.problem(root)


def random_graph(classes: int, window: int, cyclic: float, seed: int) -> Problem:
    """Classes that use earlier ones in a window, and with probability `cyclic` any one."""
    rng, g = random.Random(seed), Builder()
    for cls in range(classes):
        g.cls()
        if cls < 3:
            g.node(cls, [], 20)
        for _ in range(rng.randint(1, 5) if cls else 0):
            children = [rng.randrange(max(0, cls - window), cls) for _ in range(rng.randint(1, 3))]
            if rng.random() < cyclic:
                children.append(rng.randrange(classes))
            g.node(cls, children, rng.choice([0, 1, 1, 2, 3, 5, 8, 10]))
    return g.problem(classes - 1, classes - 2)


def cover(users: int, parts: int, seed: int) -> Problem:
    """Each user needs one of four parts; parts are shared."""
    rng, g = random.Random(seed), Builder()
    shared = [g.cls() for _ in range(parts)]
    for cls in shared:
        g.node(cls, [], rng.randint(1, 10))
    tops = [g.cls() for _ in range(users)]
    for cls in tops:
        for part in rng.sample(shared, 4):
            g.node(cls, [part], 0)
    return g.problem(*tops)


def algebra(classes: int, seed: int) -> Problem:
    """Terms under commutativity, a unit and distributivity: many nodes a class, and cycles."""
    rng, g = random.Random(seed), Builder()
    values = [g.cls() for _ in range(max(2, classes // 20))]
    unit = g.cls()
    for cls in (*values, unit):
        g.node(cls, [], 1)
    while g.classes < classes:
        a, b, c = rng.choice(values[-400:]), rng.choice(values[-400:]), rng.choice(values[-200:])
        sum_of = g.cls()
        g.node(sum_of, [a, b], rng.choice([1, 2, 4]))
        g.node(sum_of, [sum_of, unit], 1)
        g.node(sum_of, [b, a], rng.choice([1, 2, 3]))
        if rng.random() < 0.6:
            left, right = g.cls(), g.cls()
            g.node(left, [a, c], rng.choice([1, 2]))
            g.node(right, [b, c], 2)
            g.node(sum_of, [left, right], 1)
            g.node(left, [sum_of, c], 1)
            g.node(a, [left, c], 3)
            values += [left, right]
        values.append(sum_of)
    return g.problem(*values[-5:])


def library(classes: int, seed: int) -> Problem:
    """Programs that may call shared functions: a call is cheap once the function's body is paid."""
    rng, g = random.Random(seed), Builder()
    leaves = [g.cls() for _ in range(20)]
    for cls in leaves:
        g.node(cls, [], 1)
    terms = list(leaves)
    bodies: list[int] = []
    while g.classes < classes:
        cls = g.cls()
        recent = terms[-300:]
        for _ in range(rng.randint(1, 2)):
            g.node(cls, [rng.choice(recent) for _ in range(rng.randint(1, 3))], rng.randint(1, 3))
        if rng.random() < 0.1:
            bodies.append(cls)
        for _ in range(rng.randint(0, 4) if bodies else 0):
            g.node(cls, [rng.choice(bodies[-60:]), rng.choice(recent)], 1)
        terms.append(cls)
    return g.problem(*terms[-40:])


FAMILIES: dict[str, Callable[[int], Problem]] = {
    "layers 10": lambda seed: layers(10, seed),
    "layers 30": lambda seed: layers(30, seed),
    "layers 200": lambda seed: layers(200, seed),
    "acyclic 100": lambda seed: random_graph(100, 20, 0, seed),
    "cyclic 60": lambda seed: random_graph(60, 15, 0.2, seed),
    "cyclic 100": lambda seed: random_graph(100, 20, 0.2, seed),
    "cover 40": lambda seed: cover(40, 30, seed),
    "cover 100": lambda seed: cover(100, 60, seed),
}

LARGE: dict[str, Callable[[int], Problem]] = {
    "layers 1000": lambda seed: layers(1000, seed),
    "cyclic 6500": lambda seed: random_graph(6500, 60, 0.2, seed),
    "cyclic 6500, wide": lambda seed: random_graph(6500, 1000, 0.3, seed),
    "cover 3500": lambda seed: cover(3500, 1500, seed),
    "algebra 7000": lambda seed: algebra(7000, seed),
    "library 5000": lambda seed: library(5000, seed),
}
"""Families of 15,000 to 20,000 nodes."""
