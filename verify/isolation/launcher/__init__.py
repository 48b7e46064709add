"""The process between the caller and the user's program: it isolates, watches and cleans up.

It is started as ``python -I -S verify/isolation/launcher`` (see ``__main__``), with nothing but the standard library,
so that whatever it does to itself (namespaces, mounts, becoming the reaper of orphans) never concerns the caller, and
so that it can clean up after a caller that was killed. Modules import each other relatively because the package has
another name then.
"""
