"""Builds the wheel. In a checkout networks and configuration stand at the top, as models/ and conf/; names that are
general must not land in anybody's site-packages, so a wheel holds them as mitigate/_models and mitigate/_conf.

The variable MITIGATE_REPOSITORY, an address such as https://github.com/OWNER/NAME, which a release sets, makes the
links of README absolute and adds the project's links to the metadata."""

import os
import re
import shutil
import tomllib
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


def readme(repository: str, version: str) -> str:
    """README with links to the files of a version in a repository; without one, as it is."""
    text = Path("README.md").read_text(encoding="utf-8")
    if not repository:
        return text
    text = re.sub(r"(!\[[^]]*\]\()(?!https?:|#)", rf"\1{repository}/raw/v{version}/", text)
    return re.sub(r"(\]\()(?!https?:|#)", rf"\1{repository}/blob/v{version}/", text)


def links(repository: str, version: str) -> dict[str, str]:
    """The project's links in the metadata."""
    found = {"Paper": "https://aclanthology.org/2021.emnlp-main.410"}
    if repository:
        files = f"{repository}/blob/v{version}"
        found |= {"Source": repository, "Issues": f"{repository}/issues"}
        found |= {"Documentation": f"{files}/docs/README.md", "Changelog": f"{files}/CHANGELOG.md"}
    return found


if __name__ == "__main__":  # a test imports the functions
    where = os.environ.get("MITIGATE_REPOSITORY", "").rstrip("/")
    number = tomllib.loads(Path("pyproject.toml").read_text(encoding="utf-8"))["project"]["version"]
    setup(
        cmdclass={"build_py": BuildWithNetworks},
        long_description=readme(where, number),
        long_description_content_type="text/markdown",
        project_urls=links(where, number),
    )
