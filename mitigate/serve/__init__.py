"""The service: a queue of jobs, the processes that run them, HTTP and a page. It imports no recipe."""
