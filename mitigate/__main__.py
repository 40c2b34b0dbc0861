"""`python -m mitigate`."""

from mitigate.cli import cli as cli

if __name__ == "__main__":
    cli()
