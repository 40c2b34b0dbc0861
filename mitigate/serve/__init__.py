"""The service: a queue of jobs, the processes that work on them, HTTP and a page. It checks settings, starts recipes as
processes of their own, and reads run folders."""
