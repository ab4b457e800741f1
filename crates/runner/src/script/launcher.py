# Runs a program of the engine's package with its benchmark modules taken from a folder of their own.
#
#   launcher.py ROOT PACKAGE PROGRAM ARGUMENT...
#
# Every module below PACKAGE comes from ROOT, whatever the engine's own tree has in its place; everything else is the
# engine's, found as it always is.
import importlib.util
import os
import runpy
import sys

root, package, program = sys.argv[1:4]
# This program's own folder is no place of the engine's.
del sys.path[0]
sys.argv = [program] + sys.argv[4:]


class Exported:
    """Finds the modules of the package in the folder."""

    @staticmethod
    def find_spec(name, path=None, target=None):
        if name != package and not name.startswith(package + "."):
            return None
        place = os.path.join(root, *name.split("."))
        if os.path.isdir(place):
            first = os.path.join(place, "__init__.py")
            if os.path.isfile(first):
                return importlib.util.spec_from_file_location(name, first, submodule_search_locations=[place])
            return None
        if os.path.isfile(place + ".py"):
            return importlib.util.spec_from_file_location(name, place + ".py")
        # A module that the folder lacks is one that a patch has added.
        raise ModuleNotFoundError("no module %s among the exported files" % name, name=name)


sys.meta_path.insert(0, Exported)
runpy.run_module(program, run_name="__main__", alter_sys=True)
