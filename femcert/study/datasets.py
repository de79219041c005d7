"""Measured data that demos and tests use: files of public repositories, by name, with checksums. None is shipped.

A file is taken from the folder that the environment variable ``FEMCERT_DATA`` names, if it is there; else it is
downloaded once, by pooch, to the cache of the user (``pip install 'femcert[data]'``).
"""

from __future__ import annotations

import hashlib
import os
from pathlib import Path

from ..checks import nearest
from ..errors import DatasetError, InputError

__all__ = ["fetch", "names"]

FOLDER = "FEMCERT_DATA"
ADDRESS = "https://raw.githubusercontent.com"
# Repositories at fixed commits, and their licences.
RADAR = "cultpenguin/sippi/c7193957cda362d53785eadbe29f6194b05a4c62"  # MIT
XRAY = "robert-abc/HTC2022-Sparse-DIP/f725cda492bf9b7173d0d9b8a98f894b03673925"  # Apache 2.0
TANK = "CUQI-DTU/KTC2023-CUQI9/b1f09b233353fd5352c592b4dbc3e231ab017c46"  # Apache 2.0

# Name: address after that of all, SHA-256.
FILES: dict[str, tuple[str, str]] = {
    # Travel times of radar between two boreholes: Looms et al., Geophysics 75(6), 2010.
    "crosshole_radar/AM13_data.mat": (
        f"{RADAR}/data/crosshole/AM13_data.mat",
        "75c801e32e958730a47dd1d0254ea8dbba92701e49e9db63fb25b36b4d767363",
    ),
    # The hardest level of the Helsinki Tomography Challenge 2022: scans, true objects, a learned reconstruction.
    "limited_angle_xray/ta_category7.mat": (
        f"{XRAY}/example/input/ta_category7.mat",
        "bd9d984b184dac8099b96a2e680fbf7d838e33e49f1e31c44d711a5c530154c9",
    ),
    "limited_angle_xray/tb_category7.mat": (
        f"{XRAY}/example/input/tb_category7.mat",
        "478650e0a1b2136a8185ff0fdb4d0133ef2801e86edc06cc3805708b32afb46f",
    ),
    "limited_angle_xray/ta_truth.png": (
        f"{XRAY}/example/groundTruth/ta_category7.png",
        "7beb1a363aeafc9893535882224a07c9ea882ffb2995f9b8051b8ce62c37e12d",
    ),
    "limited_angle_xray/tb_truth.png": (
        f"{XRAY}/example/groundTruth/tb_category7.png",
        "4b3ab25aa6eb49dc946203ef2ee655d3e64f4c5bc249babec3000b7da59b39c8",
    ),
    "limited_angle_xray/ta_learned.png": (
        f"{XRAY}/example/output/ta_category7.png",
        "aae8cd63fcb1fbc01eb52fdc196b5a9d3fd314c5f1f6e99f5b91f61ec4449880",
    ),
    "limited_angle_xray/tb_learned.png": (
        f"{XRAY}/example/output/tb_category7.png",
        "55ba284bf7c8f3f59eb50dcb73fa2c4ebb003f31b979956dcf4cfbbff8800d9c",
    ),
    # Electrodes on a water tank: the Kuopio Tomography Challenge 2023.
    "eit_tank/ref.mat": (
        f"{TANK}/TrainingData/ref.mat",
        "105ad8efb5ebc00729b88e682760e5bf29ebb9d6b7db56cf695d9c1fb0b3e6c8",
    ),
    "eit_tank/data1.mat": (
        f"{TANK}/TrainingData/data1.mat",
        "40b4c9f86fd19d43c92c15beaa7f9ce6ba27b05000154824d1901ac936b5e9fa",
    ),
    "eit_tank/data2.mat": (
        f"{TANK}/TrainingData/data2.mat",
        "8148ca2664e37e909b8d028547f7c870f06b03952697d336f10a37cc9142f42f",
    ),
    "eit_tank/true1.mat": (
        f"{TANK}/GroundTruths/true1.mat",
        "1b5ad2ae69f5ae0496f26c10b9d532e951982012803987d23292c273600b2df3",
    ),
    "eit_tank/true2.mat": (
        f"{TANK}/GroundTruths/true2.mat",
        "c7072916c64691d44e9a69439f26f87230c4d52aae2d1334cc172306856545ab",
    ),
}


def names() -> list[str]:
    """The names that `fetch` accepts."""
    return list(FILES)


def fetch(name: str) -> Path:
    """The path of a file of measured data, which is downloaded if need be.

    Parameters
    ----------
    name
        One of `names`, such as ``"crosshole_radar/AM13_data.mat"``.

    Raises
    ------
    DatasetError
        The file is not in the local folder and cannot be downloaded, or it is another file than the one expected.
    """
    if name not in FILES:
        raise InputError(f"there is no data file {name!r}{nearest(name, FILES)}; they are {', '.join(FILES)}")
    address, expected = FILES[name]
    folder = os.environ.get(FOLDER)
    if folder and (path := Path(folder) / name).is_file():
        if hashlib.sha256(path.read_bytes()).hexdigest() != expected:
            raise DatasetError(f"{path} is not the file of that name that femcert knows: its checksum is another one")
        return path
    return _downloaded(name, f"{ADDRESS}/{address}", expected)


def _downloaded(name: str, url: str, expected: str) -> Path:
    elsewhere = f"or put the file into a folder that the variable {FOLDER} names"
    try:
        import pooch
    except ImportError:
        raise DatasetError(
            f"data file {name!r} is not here, and pooch is not installed: pip install 'femcert[data]', {elsewhere}"
        ) from None
    folder = pooch.os_cache("femcert") / Path(name).parent
    try:
        return Path(pooch.retrieve(url, f"sha256:{expected}", fname=Path(name).name, path=folder))
    except (OSError, ValueError) as error:
        # No network, no such page, no room on the disk, another checksum.
        reason = " ".join(str(error).split())[:80]
        raise DatasetError(
            f"data file {name!r} cannot be downloaded ({type(error).__name__}: {reason} ...); try later, {elsewhere}"
        ) from None
