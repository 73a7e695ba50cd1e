"""A scripted model on loopback: it answers each request that offers tools with the next call of a script."""

import http.server
import json
import threading
import uuid


class Model:
    """Serves one agent; `steps` are `(tool, input)`, after them it says that it is done."""

    def __init__(self, steps):
        self._steps = iter(steps)
        self._turn = threading.Lock()
        model = self

        class Handler(_Handler):
            def next_step(self):
                with model._turn:
                    return next(model._steps, None)

        self._server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.address = f"http://127.0.0.1:{self._server.server_port}"
        self._thread = threading.Thread(target=self._server.serve_forever)

    def __enter__(self):
        self._thread.start()
        return self

    def __exit__(self, *error):
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()


class _Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def next_step(self):
        raise NotImplementedError

    def log_message(self, *words):
        """Says nothing."""

    def do_GET(self):
        self._json({"data": [], "models": []})

    def do_POST(self):
        asked = json.loads(self.rfile.read(int(self.headers.get("content-length") or 0)) or b"{}")
        step = self.next_step() if asked.get("tools") else None
        if "ount" in self.path and "oken" in self.path:
            self._json({"input_tokens": 10, "totalTokens": 10})
        elif self.path.startswith("/v1/messages"):
            self._events(_anthropic(step, asked))
        elif self.path.endswith("/responses"):
            self._events(_responses(step))
        elif self.path.endswith("/chat/completions"):
            self._events(_chat(step, asked))
        elif "enerateContent" in self.path:
            answer = _gemini(step)
            if "stream" in self.path:
                self._events([("", answer)])
            else:
                self._json(answer)
        else:
            self._json({"ok": True})

    def _json(self, shape):
        body = json.dumps(shape).encode()
        self.send_response(200)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def _events(self, events):
        self.send_response(200)
        self.send_header("content-type", "text/event-stream")
        self.send_header("connection", "close")
        self.end_headers()
        for name, data in events:
            words = data if isinstance(data, str) else json.dumps(data)
            head = f"event: {name}\n" if name else ""
            self.wfile.write(f"{head}data: {words}\n\n".encode())
        self.close_connection = True


def _anthropic(step, asked):
    if step:
        block = {"type": "tool_use", "id": f"toolu_{uuid.uuid4().hex[:20]}", "name": step[0], "input": {}}
        delta = {"type": "input_json_delta", "partial_json": json.dumps(step[1])}
    else:
        block, delta = {"type": "text", "text": ""}, {"type": "text_delta", "text": "done"}
    message = {
        "id": f"msg_{uuid.uuid4().hex[:20]}",
        "type": "message",
        "role": "assistant",
        "model": asked.get("model"),
        "content": [],
        "stop_reason": None,
        "stop_sequence": None,
        "usage": {"input_tokens": 10, "output_tokens": 1},
    }
    stop = {"stop_reason": "tool_use" if step else "end_turn", "stop_sequence": None}
    yield "message_start", {"type": "message_start", "message": message}
    yield "content_block_start", {"type": "content_block_start", "index": 0, "content_block": block}
    yield "content_block_delta", {"type": "content_block_delta", "index": 0, "delta": delta}
    yield "content_block_stop", {"type": "content_block_stop", "index": 0}
    yield "message_delta", {"type": "message_delta", "delta": stop, "usage": {"output_tokens": 10}}
    yield "message_stop", {"type": "message_stop"}


def _responses(step):
    id = f"resp_{uuid.uuid4().hex[:20]}"
    if step and isinstance(step[1], str):
        item = {"type": "custom_tool_call", "name": step[0], "input": step[1], "status": "completed"}
    elif step:
        item = {
            "type": "function_call",
            "name": step[0],
            "arguments": json.dumps(step[1]),
            "status": "completed",
        }
    else:
        text = {"type": "output_text", "text": "done", "annotations": []}
        item = {"type": "message", "role": "assistant", "status": "completed", "content": [text]}
    item |= {"id": f"item_{uuid.uuid4().hex[:12]}", "call_id": f"call_{uuid.uuid4().hex[:12]}"}
    usage = {
        "input_tokens": 10,
        "output_tokens": 10,
        "total_tokens": 20,
        "input_tokens_details": {"cached_tokens": 0},
        "output_tokens_details": {"reasoning_tokens": 0},
    }
    done = {"id": id, "output": [item], "usage": usage}
    yield "response.created", {"type": "response.created", "response": {"id": id}}
    yield "response.output_item.done", {"type": "response.output_item.done", "output_index": 0, "item": item}
    yield "response.completed", {"type": "response.completed", "response": done}


def _chat(step, asked):
    base = {"id": f"c-{uuid.uuid4().hex[:8]}", "object": "chat.completion.chunk", "created": 1}
    base["model"] = asked.get("model")
    delta: dict[str, object] = {"role": "assistant", "content": "done"}
    if step:
        call = {"name": step[0], "arguments": json.dumps(step[1])}
        tool = {"index": 0, "id": f"call_{uuid.uuid4().hex[:8]}", "type": "function", "function": call}
        delta = {"role": "assistant", "tool_calls": [tool]}
    finish = {"index": 0, "delta": {}, "finish_reason": "tool_calls" if step else "stop"}
    usage = {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2}
    yield "", {**base, "choices": [{"index": 0, "delta": delta, "finish_reason": None}]}
    yield "", {**base, "choices": [finish], "usage": usage}
    yield "", "[DONE]"


def _gemini(step):
    part = {"functionCall": {"name": step[0], "args": step[1]}} if step else {"text": "done"}
    candidate = {"content": {"role": "model", "parts": [part]}, "finishReason": "STOP", "index": 0}
    usage = {"promptTokenCount": 1, "candidatesTokenCount": 1, "totalTokenCount": 2}
    return {"candidates": [candidate], "usageMetadata": usage}
