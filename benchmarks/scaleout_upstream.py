"""A model server for the load benchmark: answers Chat Completions after a while, with the usage it would count.

python scaleout_upstream.py PORT SECONDS
"""

from __future__ import annotations

import asyncio
import json
import sys

ANSWER = "Noted. " + "The register was compared with the list and both agree on this line. " * 8
BASE = {"id": "chatcmpl-1", "created": 0, "model": "gpt-4o"}


def answer(body: bytes) -> bytes:
    """The whole response to a request, streamed if it asks for that."""
    usage = {"prompt_tokens": len(body) // 4, "completion_tokens": len(ANSWER) // 4, "total_tokens": 0}
    usage["total_tokens"] = usage["prompt_tokens"] + usage["completion_tokens"]
    if b'"stream":true' not in body.replace(b" ", b"")[-4096:] and b'"stream": true' not in body:
        message = {"role": "assistant", "content": ANSWER}
        choice = {"index": 0, "message": message, "finish_reason": "stop"}
        data = json.dumps({**BASE, "object": "chat.completion", "choices": [choice], "usage": usage}).encode()
        return b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: %d\r\n\r\n%s" % (len(data), data)
    events = [
        {"choices": [{"index": 0, "delta": {"role": "assistant", "content": ANSWER}, "finish_reason": None}]},
        {"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]},
        {"choices": [], "usage": usage},
    ]
    lines = [json.dumps({**BASE, "object": "chat.completion.chunk", **event}).encode() for event in events]
    whole = b"".join(b"data: " + line + b"\n\n" for line in lines) + b"data: [DONE]\n\n"
    head = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n"
    return head + b"%x\r\n%s\r\n0\r\n\r\n" % (len(whole), whole)


async def main(port: int, seconds: float) -> None:
    """Serve for ever."""

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while True:
                head = (await reader.readuntil(b"\r\n\r\n")).lower()
                size = next((int(row[15:]) for row in head.split(b"\r\n") if row.startswith(b"content-length:")), 0)
                body = await reader.readexactly(size)
                if b"/chat/completions" in head.partition(b"\r\n")[0]:
                    await asyncio.sleep(seconds)
                    writer.write(answer(body))
                else:
                    writer.write(b"HTTP/1.1 404 Not Found\r\ncontent-length: 0\r\n\r\n")
                await writer.drain()
        except (asyncio.IncompleteReadError, ConnectionError):
            writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", port, limit=2**20)
    async with server:
        await server.serve_forever()


if __name__ == "__main__":
    asyncio.run(main(int(sys.argv[1]), float(sys.argv[2])))
