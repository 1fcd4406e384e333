"""The container of a Deployment, started on this machine as a cluster would: its own root file system, read-only, without
privileges, with the files of a ConfigMap and a Secret as the kubelet lays and changes them. Without a cgroup and the
filter of system calls. Needs root and a namespace of mounts, network and processes of its own.
"""

import os
import pathlib
import re
import shutil
import subprocess

from client import send, until


def enter(arguments):
    """Starts this script again in namespaces of its own, and ends with it. Gives False where that cannot be."""
    if os.environ.get("CREOLE_POD"):
        subprocess.run(["ip", "link", "set", "lo", "up"], check=True)
        return True
    if os.geteuid() != 0 or not all(map(shutil.which, ("unshare", "setpriv", "ip"))):
        return False
    unshare = ["unshare", "--mount", "--net", "--pid", "--fork", "--kill-child", "--mount-proc"]
    os.execvpe("unshare", [*unshare, *arguments], {**os.environ, "CREOLE_POD": "1"})


def lay(folder, name, files):
    """Changes a volume as the kubelet does: a new folder, then the link to it, at once."""
    version = f"..{name}_{len(list(folder.iterdir()))}"
    (folder / version).mkdir()
    for file, text in files.items():
        path = folder / version / file
        path.write_text(text)
        os.chown(path, 0, 65534)
        path.chmod(0o440)
        if not (folder / file).is_symlink():
            (folder / file).symlink_to(f"..data/{file}")
    (folder / "..data_tmp").symlink_to(version)
    (folder / "..data_tmp").rename(folder / "..data")


class Pod:
    def __init__(self, folder, creole, objects, hosts):
        self.process = None
        self.spec = objects["Deployment"]["spec"]["template"]["spec"]
        [self.container] = self.spec["containers"]
        self.ports = {port["name"]: port["containerPort"] for port in self.container["ports"]}
        self.root, self.log = folder / "root", folder / "log"
        self.volumes = {volume["name"]: folder / volume["name"] for volume in self.spec["volumes"]}
        # A program of the tests may need libraries; the image's needs none.
        libraries = re.findall(r"(/\S+) \(0x", subprocess.run(["ldd", creole], capture_output=True, text=True).stdout)
        for source, path in {creole: "/usr/local/bin/creole", **{one: one for one in libraries}}.items():
            self.place(path).write_bytes(pathlib.Path(source).read_bytes())
            self.place(path).chmod(0o755)
        self.place("/etc/hosts").write_text(f"127.0.0.1 {hosts}\n")
        self.place("/etc/nsswitch.conf").write_text("hosts: files\n")
        self.place("/dev/null").touch()
        self.place("/proc/.").mkdir(exist_ok=True)
        self.mount("--bind", self.root, self.root)
        self.mount("--bind", "/dev/null", self.root / "dev/null")
        self.mount("-t", "proc", "proc", self.root / "proc")
        for mount in self.container["volumeMounts"]:
            volume = self.volumes[mount["name"]]
            volume.mkdir()
            self.place(mount["mountPath"] + "/.").mkdir(exist_ok=True)
            inside = self.root / mount["mountPath"].lstrip("/")
            self.mount("--bind", volume, inside)
            self.mount("-o", "remount,bind,ro", inside)
        self.mount("-o", "remount,bind,ro", self.root)

    def place(self, path):
        path = self.root / path.lstrip("/")
        path.parent.mkdir(parents=True, exist_ok=True)
        return path

    def mount(self, *arguments):
        subprocess.run(["mount", *map(str, arguments)], check=True)

    def remove(self):
        if self.process:
            self.process.kill()
            self.process.wait()
        subprocess.run(["umount", "--recursive", self.root], check=True)

    def start(self):
        """Starts the container, and waits as the kubelet does for its first probe."""
        user = self.spec["securityContext"]
        assert user["runAsNonRoot"] and self.container["securityContext"]["readOnlyRootFilesystem"]
        # The change of root and user needs three capabilities, and leaves none.
        command = ["setpriv", "--no-new-privs", "--bounding-set=-all,+sys_chroot,+setuid,+setgid", "--"]
        command += ["chroot", f"--userspec={user['runAsUser']}:{user['runAsGroup']}", self.root, "/usr/local/bin/creole"]
        with open(self.log, "wb") as log:
            environment = {"PATH": "/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"}
            self.process = subprocess.Popen([*command, *self.container["args"]], env=environment, stderr=log, stdout=log)
        until("the start", self.started)

    def started(self):
        assert self.process.poll() is None, self.log.read_text()
        return self.probe("startupProbe") == 200

    def probe(self, name):
        """The status that a probe gets, 0 where nothing listens."""
        asked = self.container[name]["httpGet"]
        try:
            address = f"127.0.0.1:{self.ports[asked['port']]}"
            return send(address, asked["path"], None, {"host": "10.0.0.7", "x-api-key": ""}, "GET").status
        except OSError:
            return 0

    def status(self, key):
        """A line of the process' state, as the kernel shows it."""
        text = pathlib.Path(f"/proc/{self.process.pid}/status").read_text()
        return re.search(rf"^{key}:\s*(.*)$", text, re.MULTILINE)[1].split()
