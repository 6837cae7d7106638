# SPDX-License-Identifier: GPL-3.0-or-later
"""The application that runs a service of the sandbox."""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qsl, unquote

from starlette.convertors import PathConvertor, register_url_convertor
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, PlainTextResponse, Response
from starlette.routing import Route, Router

from sandbox.faults import compressed_blanks, cutting_head, trickling, truncating
from sandbox.log import BODY_LIMIT, Entry, mask, mask_headers

if TYPE_CHECKING:
    from starlette.types import Message, Receive, Scope, Send

    from sandbox.context import Service
    from sandbox.faults import Fault

Handler = Callable[[Request], Response | Awaitable[Response]]

# Text bodies up to this size in bytes are read before the service gets the request, because log,
# faults and logins need them. All other bodies are streamed.
BUFFER_LIMIT = 8 * 1024 * 1024

_logger = logging.getLogger("sandbox")


class ErrorResponse(Exception):
    """Exception that ends a request with a response. Code below a handler may raise it too."""

    def __init__(self, response: Response) -> None:
        super().__init__(response.status_code)
        self.response = response


class _WholePath(PathConvertor):
    """Converter that matches the rest of a path. Item names may contain line breaks [repo-26]."""

    regex = "(?s:.*)"


register_url_convertor("path", _WholePath())


def route(path: str, handler: Handler, *methods: str) -> Route:
    """Return a route below the prefix of a service.

    Paths are matched before decoding, so an encoded slash (`%2F`) stays inside its segment.
    `request.path_params` contains decoded values. A handler that is not a coroutine function blocks
    the event loop, so no other handler runs at the same time.

    :param path: `{name}` matches a segment, `{name:path}` the rest of the path
    :param methods: GET by default, which includes HEAD
    """

    async def endpoint(request: Request) -> Response:
        params = request.path_params
        for name, value in params.items():
            params[name] = unquote(value)
        response = handler(request)
        return response if isinstance(response, Response) else await response

    endpoint.__doc__ = handler.__doc__
    return Route(path, endpoint, methods=list(methods) or ["GET"])


class _Body:
    """The body of a request. Text up to `BUFFER_LIMIT` is buffered, other bodies are streamed."""

    def __init__(self, scope: Scope, receive: Receive) -> None:
        headers = dict(scope["headers"])
        self.content_type: str = headers.get(b"content-type", b"").decode("latin-1").lower()
        self.data: bytes | None = None
        self.size = 0
        self._receive = receive
        self._complete = False
        self._length = headers.get(
            b"content-length", b"0" if b"transfer-encoding" not in headers else b""
        )

    @property
    def is_text(self) -> bool:
        kind = self.content_type.partition(";")[0].strip()
        return kind.startswith("text/") or kind.endswith(("json", "xml", "x-www-form-urlencoded"))

    async def buffer(self) -> None:
        if self._length == b"0":
            self.data, self._complete = b"", True
        elif self.is_text and self._length.isdigit() and int(self._length) <= BUFFER_LIMIT:
            self.data = b"".join([chunk async for chunk in self._chunks()])

    async def _chunks(self) -> AsyncIterator[bytes]:
        while not self._complete:
            yield (await self.receive_stream()).get("body", b"")

    async def drain(self) -> None:
        """Read the rest of the body, because clients may send it before they read the response."""
        async for _chunk in self._chunks():
            pass

    async def receive_stream(self) -> Message:
        message = await self._receive()
        self.size += len(message.get("body", b""))
        # The message for a disconnected client has no `more_body` either.
        self._complete = not message.get("more_body", False)
        return message

    def receive(self) -> Receive:
        """Return a `receive` function. It replays a buffered body from the start."""
        if self.data is None:
            return self.receive_stream
        pending: list[Message] = [{"type": "http.request", "body": self.data, "more_body": False}]

        async def replay() -> Message:
            return pending.pop() if pending else await self._receive()

        return replay

    def text(self) -> str:
        return self.data.decode("utf-8", "replace") if self.data else ""

    def form(self) -> dict[str, str]:
        if "x-www-form-urlencoded" not in self.content_type:
            return {}
        return dict(parse_qsl(self.text(), keep_blank_values=True))


def _query(scope: Scope) -> dict[str, str]:
    return dict(parse_qsl(scope["query_string"].decode("latin-1"), keep_blank_values=True))


class ServiceApp:
    """ASGI application of a service. It logs requests, applies faults and checks logins."""

    def __init__(self, service: Service) -> None:
        self.service = service
        self.context = service.context
        self._router = Router(service.routes(), redirect_slashes=False, default=self._default)

    async def _default(self, scope: Scope, receive: Receive, send: Send) -> None:
        scope["sandbox.entry"].routed = False
        await self.service.not_found(Request(scope, receive))(scope, receive, send)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        # Routes match the path as sent: an encoded slash must not split a segment.
        raw_path: str = scope["raw_path"].decode("latin-1")
        scope["path"] = raw_path
        path = raw_path[len(self.service.name) + 1 :] or "/"
        body = _Body(scope, receive)
        await body.buffer()
        form = body.form()
        entry = self._log(scope, path, body, form)
        for service in self.context.services.values():
            service.tick()
        settings = self.context.settings(self.service.name)
        if settings["delay_ms"]:
            await asyncio.sleep(settings["delay_ms"] / 1000)
        if settings["log_responses"]:
            send = _noting_json(entry, send)
        fault = self._fault(entry, path, body, form)
        if fault is None:
            await self._response(scope, body, _noting_status(entry, "status", send))
        else:
            await self._faulty(fault, scope, body, entry, send)
        entry.body_bytes = body.size

    def _log(self, scope: Scope, path: str, body: _Body, form: Mapping[str, str]) -> Entry:
        method = scope["method"]
        entry = Entry(
            service=self.service.name,
            method=method,
            path=path,
            query=mask(scope["query_string"].decode("latin-1")),
            headers=mask_headers(scope["headers"]),
            connection=scope["client"][1] if scope.get("client") else 0,
            body=mask(body.text()) if body.data and len(body.data) <= BODY_LIMIT else None,
            body_bytes=body.size,
            write=self.service.is_write(method, path, {**_query(scope), **form}),
        )
        scope["sandbox.entry"] = entry
        return self.context.log.add(entry)

    def _fault(self, entry: Entry, path: str, body: _Body, form: Mapping[str, str]) -> Fault | None:
        if not self.context.faults:
            return None
        lines = [body.text(), *(f"{name}={value}" for name, value in form.items())]
        text = "\n".join(lines)
        return self.context.faults.take(
            self.service.name, entry.method, path, text, write=entry.write
        )

    async def _response(self, scope: Scope, body: _Body, send: Send) -> None:
        request = Request(scope, body.receive())
        send = _noting_status(scope["sandbox.entry"], "served", send)
        send = _with_headers(send, self.service.headers())
        try:
            refusal = await self.service.authenticate(request)
            if refusal is not None:
                raise ErrorResponse(refusal)
            await self._router(scope, body.receive(), send)
        except ErrorResponse as error:
            await body.drain()
            await error.response(scope, body.receive(), send)
        except HTTPException as error:
            await body.drain()
            await self._refusal(request, error)(scope, body.receive(), send)
        except ClientDisconnect:
            return
        except Exception:
            _logger.exception("%s %s", scope["method"], scope["path"])
            await body.drain()
            await PlainTextResponse("The sandbox failed", 500)(scope, body.receive(), send)

    def _refusal(self, request: Request, error: HTTPException) -> Response:
        if error.status_code == 405:
            return self.service.method_not_allowed(request, (error.headers or {}).get("Allow", ""))
        return PlainTextResponse(str(error.detail), error.status_code, dict(error.headers or {}))

    async def _faulty(
        self, fault: Fault, scope: Scope, body: _Body, entry: Entry, send: Send
    ) -> None:
        resets = self.context.resets
        if fault.delay:
            await asyncio.sleep(fault.delay)
        if self.context.resets != resets:
            # The sandbox was reset during the delay, so the request belongs to an earlier test.
            _transport(scope).abort()
            return
        noting = _noting_status(entry, "status", _late(fault.late, send))
        if fault.after:
            await self._response(scope, body, _swallow)
        if fault.cut:
            _transport(scope).abort()
            return
        outgoing = noting
        if fault.truncate is not None:
            outgoing = truncating(noting, fault.truncate, _transport(scope))
        elif fault.cut_head is not None:
            outgoing = cutting_head(noting, fault.cut_head, _transport(scope))
        if fault.trickle:
            outgoing = trickling(outgoing, fault.trickle)
        if fault.responds:
            await body.drain()
            await _fault_response(fault)(scope, body.receive(), outgoing)
        else:
            await self._response(scope, body, outgoing)


def _fault_response(fault: Fault) -> Response:
    headers = dict(fault.headers or {})
    status = fault.status
    if fault.redirect is not None:
        headers["Location"] = fault.redirect
        status = status or 302
    content: Any = fault.body
    if fault.bomb is not None:
        headers["Content-Encoding"], content = "gzip", compressed_blanks(fault.bomb)
    if content is not None and not isinstance(content, (str, bytes)):
        response: Response = JSONResponse(content, status or 200, headers, fault.content_type)
    else:
        response = Response(
            content or "", status or 200, headers, fault.content_type or "text/plain"
        )
    return response


def _noting_status(entry: Entry, name: str, send: Send) -> Send:
    async def noting(message: Message) -> None:
        if message["type"] == "http.response.start":
            setattr(entry, name, message["status"])
        await send(message)

    return noting


def _noting_json(entry: Entry, send: Send) -> Send:
    """Store the body of a JSON response, up to `BODY_LIMIT`."""
    chunks: list[bytes] | None = None

    async def noting(message: Message) -> None:
        nonlocal chunks
        if message["type"] == "http.response.start":
            chunks = [] if b"json" in dict(message["headers"]).get(b"content-type", b"") else None
        elif chunks is not None:
            chunks.append(message.get("body", b""))
            body = b"".join(chunks)
            fits = len(body) <= BODY_LIMIT
            entry.response = mask(body.decode("utf-8", "replace")) if fits else None
        await send(message)

    return noting


def _late(seconds: float, send: Send) -> Send:
    async def late(message: Message) -> None:
        if message["type"] == "http.response.start":
            await asyncio.sleep(seconds)
        await send(message)

    return late


def _with_headers(send: Send, headers: dict[str, str]) -> Send:
    """Return a `send` that adds headers, and sends the head with the first chunk of the body.

    Otherwise, a client would get the complete response for an empty file before the file is opened,
    and could delete the file.
    """
    raw = [(name.lower().encode(), value.encode()) for name, value in headers.items()]
    head: Message = {}

    async def adding(message: Message) -> None:
        nonlocal head
        if message["type"] == "http.response.start":
            head = {**message, "headers": [*message["headers"], *raw]}
            return
        if head:
            await send(head)
            head = {}
        await send(message)

    return adding


async def _swallow(message: Message) -> None:
    """Drop a message of a lost response."""


def _transport(scope: Scope) -> Any:
    """Return the transport, which `sandbox.server` adds to the scope."""
    return scope["sandbox.transport"]


def json_body(data: bytes) -> Any:
    """Parse a JSON body. Return None if it is invalid."""
    try:
        return json.loads(data)
    except ValueError:
        return None
