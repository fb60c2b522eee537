"""Reading and checking program.toml."""

import tomllib
from dataclasses import dataclass, field
from pathlib import Path

SCHEMA = Path(__file__).with_name("program.toml")

WIDTHS = {"u8": 1, "u16": 2, "u32": 4, "u64": 8, "i32": 4, "i64": 8, "f64": 8}


@dataclass
class Field:
    name: str
    type: str
    repeat: int
    enum: str | None
    ref: str | None
    optional: bool
    doc: str
    offset: int


@dataclass
class Record:
    name: str
    doc: str
    fields: list[Field] = field(default_factory=list)
    size: int = 0


@dataclass
class Schema:
    format: dict
    enums: dict[str, dict]  # name -> {"doc": str, "items": {NAME: row}, "width": 2 or 4}
    records: dict[str, Record]
    rules: list[dict]  # name, phase, text, id


def class_name(name: str) -> str:
    return "".join(part.capitalize() for part in name.split("_"))


def read_record(name: str, table: dict) -> Record:
    record = Record(name, table["doc"])
    offset = alignment = 0
    for row in table["fields"]:
        base, _, repeat = row["type"].partition("x")
        width = WIDTHS[base]
        if offset % width:
            raise SystemExit(f"record {name}: field {row['name']} at byte {offset} is not aligned to its {width} bytes")
        alignment = max(alignment, width)
        record.fields.append(
            Field(
                row["name"],
                base,
                int(repeat or 1),
                row.get("enum"),
                row.get("ref"),
                row.get("optional", False),
                row.get("doc", ""),
                offset,
            )
        )
        offset += width * int(repeat or 1)
    if offset % alignment:
        raise SystemExit(f"record {name}: {offset} bytes are not a multiple of its alignment {alignment}")
    record.size = offset
    return record


def read_schema(path: Path = SCHEMA) -> Schema:
    data = tomllib.loads(path.read_text())
    enums = {}
    for name, table in data["enum"].items():
        items = {key: row for key, row in table.items() if key != "doc"}
        enums[name] = {"doc": table["doc"], "items": items}
    enums["opcode"] = {"doc": "Kind of an instruction.", "items": data["opcode"]}
    enums["micro"] = {"doc": "Micro-operation inside an instruction.", "items": data["micro"]}
    for name, enum in enums.items():
        codes = [row["code"] for row in enum["items"].values()]
        if len(set(codes)) != len(codes):
            raise SystemExit(f"enum {name}: a code is used twice")
    records = {name: read_record(name, table) for name, table in data["record"].items()}
    for name, enum in enums.items():
        widths = [WIDTHS[f.type] for record in records.values() for f in record.fields if f.enum == name]
        enum["width"] = min(widths, default=4)
    rules = data.get("rule", [])
    counts: dict[str, int] = {}
    for rule in rules:
        letter = {"load": "L", "bind": "B"}[rule["phase"]]
        counts[letter] = counts.get(letter, 0) + 1
        rule["id"] = f"{letter}{counts[letter]}"
    return Schema(data["format"], enums, records, rules)


def opcode_params(row: dict) -> list[tuple[str, str | None]]:
    """(name, None for a plain number, "value" for a VALUES index, else an enum's name) of each parameter."""
    result = []
    for text in row["params"]:
        if "@value" in text:
            result.append((text.removesuffix("@value"), "value"))
        else:
            name, _, enum = text.partition(":")
            result.append((name, enum or None))
    return result
