"""Builds the wheel. In a checkout networks and configuration stand at the top, as models/ and conf/; names that are
general must not land in anybody's site-packages, so a wheel holds them as mitigate/_models and mitigate/_conf."""

import re
import shutil
from pathlib import Path

from setuptools import setup
from setuptools.command.build_py import build_py


class BuildWithNetworks(build_py):
    """build_py that moves models/ and conf/ below mitigate/ and renames what refers to them."""

    def run(self) -> None:
        super().run()
        if self.editable_mode:
            return
        built = Path(self.build_lib)
        package = built / "mitigate"
        for place in (package / "_models", package / "_conf"):
            shutil.rmtree(place, ignore_errors=True)
        (built / "models").rename(package / "_models")
        shutil.copytree("conf", package / "_conf")
        for path in package.rglob("*.py"):
            path.write_text(
                re.sub(r"^(\s*)(from|import) models\b", r"\1\2 mitigate._models", path.read_text("utf-8"), flags=re.M),
                "utf-8",
            )
        for path in (package / "_conf").rglob("*.yaml"):
            path.write_text(re.sub(r"(_target_: )models\.", r"\1mitigate._models.", path.read_text("utf-8")), "utf-8")


setup(cmdclass={"build_py": BuildWithNetworks})
