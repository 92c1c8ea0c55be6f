#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Waits until the server has said a line, answers it and parks the connection.

    answer.py NAME
"""

import asyncio
import sys

from dialtone_client import Client, DialtoneError, TakeUntil


async def main(name: str) -> None:
    async with Client().take(name, until=TakeUntil.DATA) as (reader, writer):
        line = await reader.readline()
        print(line.decode(errors="replace").rstrip(), flush=True)
        writer.write(b"GOT " + line)


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    try:
        asyncio.run(main(sys.argv[1]))
    except (DialtoneError, OSError) as error:
        sys.exit(str(error))
    except KeyboardInterrupt:
        pass
