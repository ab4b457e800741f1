"""Pieces of the tables: medians, numbers as text, Markdown, and rows by cell and client."""

from peers import ALL
from statistics_of import median

LABELS = {peer.name: peer.label for peer in ALL}


def medians(rows, figure):
    """Returns the median over rows of a figure, of those that have it; None without any."""
    return median([x for x in map(figure, rows) if x is not None])


def quiet(value, digits):
    return "–" if value is None else f"{value:,.{digits}f}"


def percent(value):
    return "–" if value is None else f"{value:+.1f}"


def cell_title(cell, unit):
    """Returns a cell's title: `512-neighbour` is 512 of the unit, with what follows said."""
    number, _, rest = cell.partition("-")
    words = {"neighbour": ", with a busy neighbour on the client's core",
             "unprivileged": ", with such a neighbour, without real-time scheduling",
             "two-workers": ", two workers", "profile": ", where the time goes",
             "two-cores": ", two workers on a core each, one of them the server's", "": ""}
    count = int(number)
    return f"{count:,} {unit if count != 1 else unit.rstrip('s')}{words[rest]}"


def by_cell(rows):
    """Returns (cell, [(client, rows)]), cells as they first come, clients as they are listed."""
    cells = {}
    for row in rows:
        cells.setdefault(row["cell"], {}).setdefault(row["client"], []).append(row)
    order = list(LABELS)
    return [(cell, sorted(found.items(), key=lambda item: order.index(item[0])))
            for cell, found in cells.items()]


def markdown(head, lines):
    rows = [head, ["---"] * len(head), *lines]
    return "\n".join("| " + " | ".join(map(str, row)) + " |" for row in rows)
