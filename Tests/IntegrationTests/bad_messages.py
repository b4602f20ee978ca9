"""Publishes what our own client never would, and looks into the dead queue.

Usage: bad_messages.py AMQP_URL headers POOL ID      a job with every kind of header and property
       bad_messages.py AMQP_URL dead                 prints the dead queue as JSON lines; takes nothing
"""
import base64
import datetime
import decimal
import json
import sys

import pika


def nested(depth):
    table = {"leaf": "x"}
    for _ in range(depth):
        table = {"a": table, "b": [table["leaf"] if "leaf" in table else 1, None]}
    return table


def publish_headers(channel, pool, job):
    body = {"v": 1, "id": job, "kind": "reply", "input": {"text": "exotic headers"}}
    forged = [{"queue": "gen.jobs.v1.%s.interactive" % pool, "reason": "rejected", "count": 2**40, "exchange": ""}]
    exotic = {
        "x-death": forged, "x-first-death-reason": "rejected", "x-delivery-count": -5, "x-gen-reason": "forged",
        "bool": True, "int": -(2**31), "long": 2**63 - 1, "decimal": decimal.Decimal("1.5"), "none": None,
        "time": datetime.datetime(2026, 1, 1), "bytes": b"\xff\x00", "array": [1, [2, [3, {}]]], "deep": nested(40),
        "": "empty name", "long text": "y" * 60_000, "traceparent": 7,
    }
    for attempt in (9999, -1, "many", None, [], {}):
        headers = dict(exotic, **{"x-attempt": attempt})
        properties = pika.BasicProperties(
            content_type="application/json", delivery_mode=2, message_id=job, headers=headers, priority=255,
            correlation_id="c" * 255, reply_to="amq.rabbitmq.reply-to.x", timestamp=2**62, app_id="\u00e9", type="slogan")
        channel.basic_publish("gen.jobs.v1", pool + ".interactive", json.dumps(body), properties, mandatory=True)


def print_dead(channel):
    while True:
        method, properties, body = channel.basic_get("gen.dead.v1")
        if method is None:
            return
        headers = properties.headers or {}
        print(json.dumps({
            "reason": headers.get("x-gen-reason"), "error": headers.get("x-gen-error"), "id": properties.message_id,
            "bytes": len(body), "body": base64.b64encode(body[:4096]).decode(),
        }))


def main():
    connection = pika.BlockingConnection(pika.URLParameters(sys.argv[1]))
    channel = connection.channel()
    channel.confirm_delivery()
    if sys.argv[2] == "headers":
        publish_headers(channel, sys.argv[3], sys.argv[4])
    else:
        print_dead(channel)
    # Whatever was not acknowledged goes back.
    connection.close()


main()
