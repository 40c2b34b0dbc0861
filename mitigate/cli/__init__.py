"""The command line: arguments, help, messages, output and threads."""
