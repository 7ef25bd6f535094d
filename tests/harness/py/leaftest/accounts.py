"""Programs that refuse to run as root, or behave otherwise then: as root they get an account of their own."""

import os
import pwd
import subprocess


def as_user(name, argv):
    """The command line as that user, if this is root. Changing the user would end the kernel's watch over
    the parent, so it is asked for again."""
    if os.geteuid() != 0:
        return list(argv)
    return ["setpriv", f"--reuid={name}", f"--regid={pwd.getpwnam(name).pw_gid}", "--clear-groups", "--pdeathsig=KILL", "--", *argv]


def give(name, path):
    """A file or a folder with all in it becomes that user's, if this is root."""
    if os.geteuid() == 0:
        user = pwd.getpwnam(name)
        subprocess.run(["chown", "-R", f"{user.pw_uid}:{user.pw_gid}", path], check=True)


def run_as(name, *argv):
    """Runs it to its end; its standard output. AssertionError with what it said if it fails."""
    done = subprocess.run(as_user(name, argv), capture_output=True, text=True, check=False, cwd="/", stdin=subprocess.DEVNULL)
    if done.returncode != 0:
        raise AssertionError(f"{' '.join(argv)} failed:\n{done.stdout}{done.stderr}")
    return done.stdout
