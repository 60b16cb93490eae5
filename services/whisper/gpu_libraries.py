"""Loads by name every CUDA library that the installed CTranslate2 will ask for.

CTranslate2 looks for them only when it first multiplies on a GPU. In the build of the GPU image a version that does not
fit, or a library that is missing, fails here instead. No GPU is needed. The driver's own libcuda comes from the host.
"""

import ctypes
import importlib.util
import re
import sys
from pathlib import Path

NAMED = re.compile(rb"\blib(?:cublas|cublasLt|cudart|cudnn|cufft|curand|cusolver|cusparse|nvrtc)\w*\.so\.\d+")


class LibraryError(Exception):
    """A library cannot be found or loaded."""


def wanted_libraries(package_folder: Path) -> list[str]:
    """The names that stand in the package's own libraries."""
    found: set[bytes] = set()
    for file in [*package_folder.glob("*.so*"), *package_folder.with_name("ctranslate2.libs").glob("libctranslate2*")]:
        found.update(NAMED.findall(file.read_bytes()))
    return sorted(name.decode() for name in found)


def load(names: list[str]) -> None:
    """Loads each by its name, as CTranslate2 does.

    Raises:
        LibraryError: one cannot be loaded; the message says which and why.
    """
    for name in names:
        try:
            ctypes.CDLL(name)
        except OSError as error:
            raise LibraryError(
                f"CTranslate2 asks for {name}: {error}. Next: correct requirements-gpu.in and LD_LIBRARY_PATH"
            ) from error


def main() -> int:
    """Prints what was loaded; returns the exit code."""
    package = importlib.util.find_spec("ctranslate2")
    if package is None or package.origin is None:
        print("gpu libraries: ctranslate2 is not installed", file=sys.stderr)
        return 1
    names = wanted_libraries(Path(package.origin).parent)
    try:
        if not names:
            raise LibraryError("CTranslate2 names no CUDA library: this build of it cannot use a GPU")
        load(names)
    except LibraryError as error:
        print(f"gpu libraries: {error}", file=sys.stderr)
        return 1
    print(f"gpu libraries: {', '.join(names)} can be loaded")
    return 0


if __name__ == "__main__":
    sys.exit(main())
