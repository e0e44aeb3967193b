"""KERNELS: the inner product replaced."""

from widemargin.kernels.functions import NAMES, Kernel, KernelLike, gamma_of

__all__ = ["NAMES", "Kernel", "KernelLike", "gamma_of"]
