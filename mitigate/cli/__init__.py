"""The command line: arguments, help, messages and output."""
