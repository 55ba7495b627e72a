"""A model server for benchmarks: it streams one short answer over Chat Completions, twenty pieces, no waiting.

python gateway_upstream.py PORT
"""

from __future__ import annotations

import asyncio
import json
import sys

PIECES = 20


def answer() -> bytes:
    """The whole response."""
    base = {"id": "chatcmpl-1", "object": "chat.completion.chunk", "created": 0, "model": "gpt-4o"}
    events = []
    for number in range(PIECES):
        choice = {"index": 0, "delta": {"role": "assistant", "content": f"word {number} "}, "finish_reason": None}
        events.append({**base, "choices": [choice]})
    events.append({**base, "choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]})
    body = b"".join(b"data: " + json.dumps(event).encode() + b"\n\n" for event in events) + b"data: [DONE]\n\n"
    head = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n"
    return head + b"%x\r\n%s\r\n0\r\n\r\n" % (len(body), body)


async def main(port: int) -> None:
    """Serve for ever."""
    whole = answer()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while True:
                head = await reader.readuntil(b"\r\n\r\n")
                size = 0
                for row in head.lower().split(b"\r\n"):
                    if row.startswith(b"content-length:"):
                        size = int(row[15:])
                await reader.readexactly(size)
                writer.write(whole)
                await writer.drain()
        except (asyncio.IncompleteReadError, ConnectionError):
            writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", port, limit=2**20)
    async with server:
        await server.serve_forever()


if __name__ == "__main__":
    asyncio.run(main(int(sys.argv[1])))
