#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Says whether there is a route to a host, and each change of that.

    path.py HOST
"""

import asyncio
import sys

from dialtone_client import Client, DialtoneError


async def main(host: str) -> None:
    async for path in Client().monitor_path(host):
        if not path.coherent:
            print("the agent is gone, or reads the kernel's state again", flush=True)
            continue
        print(f"{path.status}: {path.reason}" if path.reason else path.status, flush=True)


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    try:
        asyncio.run(main(sys.argv[1]))
    except DialtoneError as error:
        sys.exit(str(error))
    except KeyboardInterrupt:
        pass
