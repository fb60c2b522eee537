"""NEFF files from Python."""

import gzip
import hashlib
import io
import json
import struct
import tarfile

import pytest
from programs import SAMPLES

from libneuron_runtime import Model, NeffError, neff

PROGRAM = SAMPLES["row"]().to_bytes()


def vendor(members: dict[str, bytes], compress: bool = True, tar_format: int = tarfile.GNU_FORMAT) -> bytes:
    """A file as another compiler lays it out: gzip, then zeros to a multiple of 1024."""
    archive = io.BytesIO()
    with tarfile.open(fileobj=archive, mode="w", format=tar_format) as tar:
        for name, data in members.items():
            member = tarfile.TarInfo(name)
            member.size = len(data)
            tar.addfile(member, io.BytesIO(data))
    payload = gzip.compress(archive.getvalue()) if compress else archive.getvalue()
    payload += bytes(-len(payload) % 1024)
    header = bytearray(1024)
    struct.pack_into("<5Q", header, 0, 2, 1024, len(payload), 2, 0)
    struct.pack_into("<I", header, 168, 1)
    header[220:229] = b"file.neff"
    struct.pack_into("<Q", header, 544, 0x209C00)
    return bytes(header) + payload


def test_pack_and_unpack() -> None:
    file = neff.unpack(neff.pack(PROGRAM, name="row", members={"debug/listing.txt": b"text"}))
    assert file.program == PROGRAM
    assert file.members["debug/listing.txt"] == b"text"
    assert (file.name, file.pkg_version, file.version_major, file.num_tpb) == ("row", 2, 2, 1)
    assert file.build_version.startswith("libneuron-runtime ")


def test_the_payload_is_a_tar_that_others_read() -> None:
    data = neff.pack(PROGRAM, name="row")
    with tarfile.open(fileobj=io.BytesIO(data[1024:])) as tar:
        assert tar.getnames() == ["sg00/program.neuronx", "sg00/def.json", "kelf-0.json", "info.json", "neff.json"]
        assert tar.extractfile("sg00/program.neuronx").read() == PROGRAM


def test_descriptions_are_json() -> None:
    members = neff.unpack(neff.pack(PROGRAM, name='a "quoted" \\ name')).members
    assert json.loads(members["info.json"])["name"] == 'a "quoted" \\ name'
    graph = json.loads(members["neff.json"])
    assert [node["op"] for node in graph["nodes"]] == ["null", "tvm_op"]
    assert graph["attrs"]["shape"] == ["list_shape", [[5, 9], [5], [5, 9]]]
    assert graph["heads"] == [[1, 0, 0], [1, 1, 0]]
    assert graph["node_row_ptr"] == [0, 1, 3]
    assert graph["metadata"]["signatures"]["default"]["outputs"]["sums"] == {"id": 1, "dtype": "float32", "shape": [5]}
    assert json.loads(members["sg00/def.json"])["var"]["x"]["size"] == 180


def test_sizes_from_slots_are_open() -> None:
    graph = json.loads(neff.unpack(neff.pack(SAMPLES["add"]().to_bytes(), name="add")).members["neff.json"])
    assert graph["attrs"]["shape"][1] == [[-1, -1]] * 3


def test_the_hash_is_the_md5_of_the_file_without_it() -> None:
    data = neff.pack(PROGRAM, name="row")
    blank = data[:172] + bytes(32) + data[204:]
    assert neff.unpack(data).hash == hashlib.md5(blank).digest() + bytes(16)


def test_pack_takes_any_contiguous_bytes() -> None:
    assert (
        neff.pack(bytearray(PROGRAM), name="row")
        == neff.pack(memoryview(PROGRAM), name="row")
        == neff.pack(PROGRAM, name="row")
    )


def test_pack_refuses_broken_programs() -> None:
    with pytest.raises(NeffError, match="too few for the header"):
        neff.pack(b"", name="x")
    with pytest.raises(NeffError, match="not the magic"):
        neff.pack(b"x" * 100, name="x")


@pytest.mark.parametrize("name", ["", "/absolute", "a/../b", "a b", "x" * 100, "neff.json"])
def test_pack_refuses_member_names(name: str) -> None:
    with pytest.raises(NeffError, match="no member name|two members"):
        neff.pack(PROGRAM, name="row", members={name: b""})


def test_verify() -> None:
    data = neff.pack(PROGRAM, name="row")
    neff.verify(data)
    for position in (50, 300, 1024 + 700, len(data) - 1):
        broken = bytearray(data)
        broken[position] ^= 4
        with pytest.raises(NeffError):
            neff.verify(bytes(broken))


def test_vendor_files_are_read_but_not_run() -> None:
    data = vendor({"sg00/PE.bin": b"\0" * 64, "neff.json": b"{}"})
    file = neff.unpack(data)
    assert (file.name, file.program, list(file.members)) == ("file.neff", None, ["sg00/PE.bin", "neff.json"])
    with pytest.raises(NeffError, match="vendor-compiled: sg00/PE.bin is machine code") as caught:
        Model(data)
    assert caught.value.name == "NRT_UNSUPPORTED_NEFF_VERSION"
    assert "compile the model for the simulator" in str(caught.value)
    assert "or load it on a Trainium host" in str(caught.value)


def test_what_is_around_a_vendor_file_is_not_taken_for_one() -> None:
    data = vendor({"sg00/PE.bin": b"\0" * 64})
    with pytest.raises(NeffError, match="gzip archive without the header of 1024 bytes.*give the .neff file"):
        Model(data[1024:])
    with pytest.raises(NeffError, match="package version .* expected 1 or 2 and 1024; this is no NEFF file"):
        Model(b"\x7fELF" + bytes(2044))
    newer = bytearray(data)
    struct.pack_into("<Q", newer, 24, 3)
    with pytest.raises(NeffError, match="version mismatch.*received: 3.0; compile the model with this release"):
        Model(bytes(newer))


def test_compressed_programs_run() -> None:
    Model(vendor({neff.PROGRAM_MEMBER: PROGRAM}))


@pytest.mark.parametrize("tar_format", [tarfile.USTAR_FORMAT, tarfile.GNU_FORMAT, tarfile.PAX_FORMAT])
def test_long_tar_names(tar_format: int) -> None:
    name = "debug_info/" + "d" * 60 + "/" + "f" * 60
    members = {name: b"data", "short": b"more"}
    assert neff.unpack(vendor(members, compress=False, tar_format=tar_format)).members == members


def test_a_damaged_gzip_stream_is_refused() -> None:
    data = bytearray(vendor({"a": bytes(range(256)) * 40}))
    data[1024 + 30 : 1024 + 60] = bytes(30)
    with pytest.raises(NeffError, match="the compressed payload is damaged"):
        neff.unpack(bytes(data))
