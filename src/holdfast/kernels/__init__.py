"""Pure maths over numbers and arrays. Imports nothing of ours; reads no clock, file or generator."""

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]
Ints = NDArray[np.int64]
Rows = NDArray[np.intp]  # places of rows in columns
