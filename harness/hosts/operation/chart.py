"""The chart of the gateway: the plain manifests are what it makes, Kubernetes takes them by its schemas, the gateway
takes their configuration and flags, and the compose file says the same.

    chart.py ROOT CREOLE HELM

CREOLE_WRITE=1 writes the manifests and the chart's copy of the alert rules.
"""

import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile

import kubernetes_validate
import yaml
from client import Checks

HEAD = "# Made out of deploy/kubernetes/chart/creole: CREOLE_WRITE=1 cargo xtask test deployment\n"
# The oldest Kubernetes that the chart names, and the newest one that the package knows.
VERSIONS = ["1.30", kubernetes_validate.latest_version()]
# Values that switch parts of the chart: (name, arguments, kinds that come or go).
CHOICES = [
    ("no autoscaler", ["--set", "autoscaling.enabled=false"], {"HorizontalPodAutoscaler": False}),
    ("no gauges", ["--set", "autoscaling.gauges=false"], {}),
    ("no policy", ["--set", "networkPolicy.enabled=false"], {"NetworkPolicy": False}),
    ("no keys", ["--set", "keysSecret="], {}),
    ("Prometheus", ["--set", "prometheusOperator=true"], {"PodMonitor": True, "PrometheusRule": True}),
    ("more", [
        "--set", "image.digest=sha256:" + "0" * 64, "--set", "image.pullSecrets[0].name=pull", "--set", "args[0]=--no-page",
        "--set", "env[0].name=HTTPS_PROXY,env[0].value=http://proxy:3128", "--set", "volumes[0].name=ca,volumes[0].configMap.name=ca",
        "--set", "volumeMounts[0].name=ca,volumeMounts[0].mountPath=/etc/ca", "--set", "nodeSelector.zone=a", "--set", "tolerations[0].operator=Exists",
    ], {}),
]
# What a person may get wrong, and words of what Helm then says.
WRONG = [
    (["--set", "image.tags=1"], "additional properties 'tags' not allowed"),
    (["--set", "config=creole.json"], "give a file that `creole check-config` accepts, --set-file config=creole.json"),
    (["--set", "readinessPath=/"], "'/readinessPath': value must be one of '/readyz', '/healthz'"),
    (["--set", "image.digest=latest"], "'/image/digest'"),
    (["--set", "probes.scheme=https"], "'/probes/scheme': value must be one of 'HTTP', 'HTTPS'"),
    # Kubernetes takes an empty list for everybody, or every port.
    *[(["--set-json", f"networkPolicy.{name}=[]"], f"'/networkPolicy/{name}': minItems") for name in ("clients", "metrics", "upstreamPorts")],
    (["--set", "networkPolicy.metrics=null"], "'/networkPolicy': missing property 'metrics'"),
    (["--kube-version", "1.29.0"], "requires kubeVersion: >=1.30.0-0"),
]


def current(check, path, text):
    """Whether a file that is made is what would be made now."""
    if os.environ.get("CREOLE_WRITE"):
        path.write_text(text)
    check(f"{path.name} is current", path.is_file() and path.read_text() == text, "CREOLE_WRITE=1 cargo xtask test deployment")


def refused(document, version):
    """Why Kubernetes would refuse an object, or nothing."""
    try:
        kubernetes_validate.validate(document, version, strict=True)
        return None
    except kubernetes_validate.ValidationError as error:
        return str(error)[:500]


def schemas(check, name, documents):
    for version in VERSIONS:
        # Those of Prometheus' operator have no schema there.
        for one in [one for one in documents if "coreos" not in one["apiVersion"]]:
            said = refused(one, version)
            check(f"{name}: Kubernetes {version} takes the {one['kind']}", said is None, said)


def fits(check, objects):
    """What one object says of another, and what the standard `restricted` for pods asks for."""
    pod = objects["Deployment"]["spec"]["template"]
    spec, labels = pod["spec"], pod["metadata"]["labels"]
    [container] = spec["containers"]
    ports = {port["name"] for port in container["ports"]}
    for kind, selector in {
        "Deployment": objects["Deployment"]["spec"]["selector"]["matchLabels"],
        "Service": objects["Service"]["spec"]["selector"],
        "PodDisruptionBudget": objects["PodDisruptionBudget"]["spec"]["selector"]["matchLabels"],
        "NetworkPolicy": objects["NetworkPolicy"]["spec"]["podSelector"]["matchLabels"],
    }.items():
        check(f"{kind}: selects the pods", selector and selector.items() <= labels.items(), str(selector))
    named = [container[probe]["httpGet"]["port"] for probe in ("livenessProbe", "readinessProbe", "startupProbe")]
    named += [port["targetPort"] for port in objects["Service"]["spec"]["ports"]]
    named += [port["port"] for rule in objects["NetworkPolicy"]["spec"]["ingress"] for port in rule["ports"]]
    check("named ports are the container's", set(named) == ports, f"{named} {ports}")
    check("the autoscaler scales the Deployment", objects["HorizontalPodAutoscaler"]["spec"]["scaleTargetRef"]["name"] == objects["Deployment"]["metadata"]["name"])
    check("the autoscaler alone sets replicas", "replicas" not in objects["Deployment"]["spec"])
    streams = int(next(arg for arg in container["args"] if arg.startswith("--shutdown-timeout=")).partition("=")[2])
    before = container["lifecycle"]["preStop"]["sleep"]["seconds"]
    check("a stopping pod has time for its streams", spec["terminationGracePeriodSeconds"] > streams + before)
    check("no token of Kubernetes", spec["automountServiceAccountToken"] is False)
    known = {"runAsNonRoot": True, "seccompProfile": {"type": "RuntimeDefault"}}
    check("the pod is restricted", known.items() <= spec["securityContext"].items(), str(spec["securityContext"]))
    known = {"allowPrivilegeEscalation": False, "readOnlyRootFilesystem": True, "capabilities": {"drop": ["ALL"]}}
    check("the container is restricted", known == container["securityContext"], str(container["securityContext"]))
    check("memory is limited", "memory" in container["resources"]["limits"])
    check("volumes are read-only", all(mount["readOnly"] for mount in container["volumeMounts"]))
    check("no object has a key", "Secret" not in objects)
    return spec, container


def compose(check, file, spec, container):
    """The compose file says what the pod says."""
    one = yaml.safe_load(file.read_text())["services"]["creole"]
    limits, user = container["resources"]["limits"], spec["securityContext"]
    for name, found, wanted in [
        ("image", one["image"], container["image"]),
        ("command", one["command"], container["args"]),
        ("mounts", [volume.split(":")[1] for volume in one["volumes"]], [mount["mountPath"] for mount in container["volumeMounts"]]),
        ("user", one["user"], f"{user['runAsUser']}:{user['runAsGroup']}"),
        ("memory", one["mem_limit"] + "i", limits["memory"].lower()),
        ("processors", str(one["cpus"]), limits["cpu"]),
        ("time to stop", one["stop_grace_period"], f"{spec['terminationGracePeriodSeconds']}s"),
        ("root file system", one["read_only"], True),
        ("capabilities", one["cap_drop"], ["ALL"]),
    ]:
        check(f"compose.yaml: {name}", found == wanted, f"{found}, not {wanted}")


def outside(check, run, chart):
    """What differs for clients outside of the cluster: a Service of another type, and TLS."""
    policy, scheme = "The network policy admits only", "curl --insecure https:"
    for choice, words in {
        "networkPolicy.enabled=true": (),
        "service.type=LoadBalancer": (policy,),
        "service.type=NodePort,networkPolicy.enabled=false": (),
        "probes.scheme=HTTPS": (scheme,),
    }.items():
        made = run("install", "creole", chart, "--dry-run=client", "--set", choice)
        objects, _, notes = made.stdout.partition("\nNOTES:\n")
        said = tuple(one for one in (policy, scheme) if one in notes)
        check(f"{choice}: its notes", made.returncode == 0 and said == words, made.stderr + notes)
        found = re.findall(r"httpGet: {path: (\S+),.*?(?:scheme: (\w+))?}", objects)
        ready = ("/readyz", "HTTPS" if scheme in words else "HTTP")
        check(f"{choice}: its probes", found == [("/healthz", ""), ready, ("/healthz", "")], str(found))


def main(root, creole, helm):
    check, root = Checks(), pathlib.Path(root)
    chart = root / "deploy/kubernetes/chart/creole"
    rules = (root / "deploy/prometheus/creole.rules.yaml").read_text()
    current(check, chart / "creole.rules.yaml", rules)

    def run(*arguments):
        return subprocess.run([helm, *arguments], capture_output=True, text=True)

    def template(*arguments):
        return run("template", "creole", chart, "--namespace", "creole", *arguments)

    linted = run("lint", "--strict", chart)
    check("helm lints the chart", linted.returncode == 0, linted.stdout + linted.stderr)
    made = template()
    check("helm makes manifests", made.returncode == 0, made.stderr)
    current(check, root / "deploy/kubernetes/manifests/creole.yaml", HEAD + made.stdout)
    documents = list(yaml.safe_load_all(made.stdout))
    objects = {one["kind"]: one for one in documents}
    check("each kind once", len(objects) == len(documents) == 6, str(list(objects)))
    schemas(check, "manifests", documents)
    typo = json.loads(json.dumps(objects["Deployment"]).replace("runAsNonRoot", "runAsNoRoot"))
    check("Kubernetes refuses a wrong word", all(refused(typo, version) for version in VERSIONS))
    spec, container = fits(check, objects)
    compose(check, root / "deploy/compose/compose.yaml", spec, container)
    for name, arguments, kinds in CHOICES:
        made = template(*arguments)
        check(f"{name}: helm makes manifests", made.returncode == 0, made.stderr)
        chosen = [one for one in yaml.safe_load_all(made.stdout) if one]
        schemas(check, name, chosen)
        found = {one["kind"] for one in chosen}
        check(f"{name}: its objects", all((kind in found) == there for kind, there in kinds.items()), str(found))
        groups = [one["spec"] for one in chosen if one["kind"] == "PrometheusRule"]
        check(f"{name}: the alert rules", groups == [yaml.safe_load(rules)] * len(groups))
    for arguments, words in WRONG:
        made = template(*arguments)
        check(f"helm refuses {arguments[-1]}", made.returncode != 0 and words in made.stderr, made.stderr)
    outside(check, run, chart)
    with tempfile.TemporaryDirectory() as folder:
        config = pathlib.Path(folder) / "creole.json"
        config.write_text(objects["ConfigMap"]["data"]["creole.json"])
        done = subprocess.run([creole, "check-config", config], capture_output=True, text=True)
        check("the gateway takes the configuration", done.returncode == 0, done.stderr)
        # The page's command, without a cluster.
        page = (root / "docs/deploy.md").read_text().replace("\\\n", "")
        [command] = re.findall(r"^helm upgrade --install (.*)$", page, re.MULTILINE)
        words = [str(chart) if word == "deploy/kubernetes/chart/creole" else word for word in command.split()]
        done = subprocess.run([helm, "template", *words], cwd=folder, capture_output=True, text=True)
        check("helm takes the command of docs/deploy.md", done.returncode == 0, done.stderr)
    known = subprocess.run([creole, "serve", "--help"], capture_output=True, text=True).stdout
    for flag in [arg.partition("=")[0] for arg in container["args"][1:]]:
        check(f"the gateway knows {flag}", f" {flag} " in known, known)
    version = subprocess.run([creole, "--version"], capture_output=True, text=True).stdout.split()[1]
    chart_says = yaml.safe_load((chart / "Chart.yaml").read_text())
    check("the chart has the gateway's version", chart_says["version"] == chart_says["appVersion"] == version, version)
    return check.close()


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
