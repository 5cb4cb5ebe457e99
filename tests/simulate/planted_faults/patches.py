"""Faults as patches: NAME.patch, whose first line says which shape of programs is best at finding it, and then what it is."""
import concurrent.futures
import glob
import json
import os
import re
import shutil
import subprocess

COPIED = ("host", "runtime", "device", "tests/simulate", "tests/support")


class Patch:
    def __init__(self, path):
        self.path = path
        self.name = os.path.splitext(os.path.basename(path))[0]
        with open(path, encoding="utf-8") as file:
            text = file.read()
        self.shape = text.split("\n", 1)[0].removeprefix("Shape:").strip()
        self.options = []
        self.files = [line[6:].strip() for line in text.splitlines() if line.startswith("+++ b/")]

    def problems(self, root):
        done = self.apply(root, "--check")
        if done.returncode:
            yield f"{self.name}: {done.stderr.strip()}"

    def prepare(self, root, build):
        """Builds a program with the fault; gives it and the options to run it with."""
        copy = os.path.join(build, "planted", self.name)
        shutil.rmtree(copy, ignore_errors=True)
        for folder in COPIED:
            shutil.copytree(os.path.join(root, folder), os.path.join(copy, folder))
        shutil.copy(os.path.join(root, "tests", "catch.hpp"), os.path.join(copy, "tests"))
        done = self.apply(copy)
        if done.returncode:
            raise RuntimeError(f"{self.name}: {done.stderr.strip()}")
        return Rebuild(root, build, copy).link([os.path.join(root, file) for file in self.files]), []

    def apply(self, folder, *options):
        apart = {**os.environ, "GIT_CEILING_DIRECTORIES": os.path.dirname(os.path.abspath(folder))}
        return subprocess.run(["git", "apply", *options, os.path.abspath(self.path)], cwd=folder, env=apart, check=False,
                              capture_output=True, text=True)


class Rebuild:
    """The simulator of a build folder, with the objects anew that depend on files of a copy of the sources which have changed."""

    def __init__(self, root, build, copy):
        self.root, self.build, self.copy = root, build, copy
        self.target = os.path.join("tests", "simulate", "simulate")

    def link(self, changed):
        commands = self.ninja("-t", "commands", self.target).splitlines()
        compiles = self.commands_of_objects()
        stale = [o for o in self.objects_that_read(changed) if o in compiles]
        with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
            list(pool.map(lambda o: self.run(self.moved(compiles[o], o)), stale))
        program = os.path.join(self.copy, "simulate")
        command = commands[-1].replace(f"-o {self.target} ", f"-o {program} ")
        for o in stale:
            command = command.replace(f" {o} ", f" {self.moved_object(o)} ")
        self.run(command)
        return program

    def run(self, command):
        done = subprocess.run(command, shell=True, cwd=self.build, capture_output=True, text=True, check=False)
        if done.returncode:
            raise RuntimeError(f"{command}: {done.stderr}")

    def commands_of_objects(self):
        with open(os.path.join(self.build, "compile_commands.json"), encoding="utf-8") as file:
            entries = json.load(file)
        commands = [entry["command"] for entry in entries if " -o tests/simulate/" in entry["command"]]
        return {command.split(" -o ", 1)[1].split(" ", 1)[0]: command for command in commands}

    def objects_that_read(self, changed):
        wanted = {os.path.realpath(path) for path in changed}
        target = None
        for line in self.ninja("-t", "deps").splitlines():
            if not line.startswith(" "):
                target = line.split(":", 1)[0]
            elif target and os.path.realpath(os.path.join(self.build, line.strip())) in wanted:
                yield target
                target = None

    def moved_object(self, o):
        return os.path.join(self.copy, "objects", o.replace("/", "_"))

    def moved(self, command, o):
        """The command for an object of the copy. Generated headers stay where they are."""
        os.makedirs(os.path.join(self.copy, "objects"), exist_ok=True)
        words = []
        for word in command.split(" "):
            prefix = "-I" if word.startswith("-I") else ""
            words.append(prefix + self.moved_path(word[len(prefix):]))
        return " ".join(words).replace(f"-o {o} ", f"-o {self.moved_object(o)} ")

    def moved_path(self, path):
        if path == self.build or path.startswith(self.build + os.sep):
            return self.moved_unity(path) if path.endswith(".cxx") else path
        inside = path == self.root or path.startswith(self.root + os.sep)
        return self.copy + path[len(self.root):] if inside else path

    def moved_unity(self, path):
        """Of a source by CMake that includes several: the same of those of the copy."""
        with open(path, encoding="utf-8") as file:
            text = file.read()
        moved = os.path.join(self.copy, "objects", os.path.basename(path))
        with open(moved, "w", encoding="utf-8") as file:
            file.write(re.sub(r'#include "(.*)"', lambda found: f'#include "{self.moved_path(found[1])}"', text))
        return moved

    def ninja(self, *arguments):
        return subprocess.run(["ninja", "-C", self.build, *arguments], check=True, capture_output=True, text=True).stdout


def read(here):
    return [Patch(path) for path in sorted(glob.glob(os.path.join(here, "planted_faults", "*.patch")))]
