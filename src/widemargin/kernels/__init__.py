"""KERNELS: the inner product replaced. Kernel functions, and the kernel matrix of the training rows."""

from widemargin.kernels.functions import NAMES, PARAMETERS, Kernel, KernelLike, gamma_of
from widemargin.kernels.gram import Gram, MatrixGram, PointsGram

__all__ = ["NAMES", "PARAMETERS", "Gram", "Kernel", "KernelLike", "MatrixGram", "PointsGram", "gamma_of"]
