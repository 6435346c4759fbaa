#!/usr/bin/env python3
"""Makes the NuGet package of the library: `pack.py OUT`, where `build OUT` was before. Prints the package's name.

The package has the assembly for .NET Framework 4.7.2 and Mono, and its symbols. The native library is not in it: it is found as
`libbh_bridge_c.so.0` where the system looks for libraries. No NuGet is needed.
"""

import re
import sys
import zipfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
VERSION = re.search(r'^version = "(.*)"', (ROOT / "Cargo.toml").read_text(), re.MULTILINE)[1]
FRAMEWORK = "net472"
NUSPEC = f"""<?xml version="1.0" encoding="utf-8"?>
<package xmlns="http://schemas.microsoft.com/packaging/2013/05/nuspec.xsd">
  <metadata>
    <id>Bh</id>
    <version>{VERSION}</version>
    <authors>The bh authors</authors>
    <license type="expression">MIT OR Apache-2.0</license>
    <description>Lazy arrays with the surface of NumCIL: operations are recorded, fused, and run on cores, GPUs and clusters.</description>
    <dependencies><group targetFramework=".NETFramework4.7.2" /></dependencies>
  </metadata>
</package>
"""
TYPES = """<?xml version="1.0" encoding="utf-8"?>
<Types xmlns="http://schemas.openxmlformats.org/package/2006/content-types">
  <Default Extension="rels" ContentType="application/vnd.openxmlformats-package.relationships+xml" />
  <Default Extension="nuspec" ContentType="application/octet" />
  <Default Extension="dll" ContentType="application/octet" />
  <Default Extension="mdb" ContentType="application/octet" />
</Types>
"""
RELATIONS = """<?xml version="1.0" encoding="utf-8"?>
<Relationships xmlns="http://schemas.openxmlformats.org/package/2006/relationships">
  <Relationship Type="http://schemas.microsoft.com/packaging/2010/07/manifest" Target="/Bh.nuspec" Id="manifest" />
</Relationships>
"""
# The same bytes from the same input.
WHEN = (1980, 1, 1, 0, 0, 0)


def pack(out):
    """Writes the package into the folder where the assembly is; its path."""
    package = out / f"Bh.{VERSION}.nupkg"
    parts = {"[Content_Types].xml": TYPES, "_rels/.rels": RELATIONS, "Bh.nuspec": NUSPEC}
    parts |= {f"lib/{FRAMEWORK}/{path.name}": path.read_bytes() for path in (out / "Bh.dll", out / "Bh.dll.mdb") if path.exists()}
    with zipfile.ZipFile(package, "w", zipfile.ZIP_DEFLATED) as file:
        for name, data in parts.items():
            file.writestr(zipfile.ZipInfo(name, WHEN), data, zipfile.ZIP_DEFLATED)
    return package


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    print(pack(Path(sys.argv[1])))
