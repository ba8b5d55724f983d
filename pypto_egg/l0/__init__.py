"""How one cube product is cut into L0 tiles: the schedules, and which of them are legal."""

from pypto_egg.l0.schedule import L0Schedule, Stationary
from pypto_egg.l0.space import CubeProduct, Drain, Schedules, schedules

__all__ = ["CubeProduct", "Drain", "L0Schedule", "Schedules", "Stationary", "schedules"]
