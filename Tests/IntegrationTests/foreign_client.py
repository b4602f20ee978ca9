"""Submits a job with pika and watches it twice with redis-py, once from the start and once late.

Usage: foreign_client.py AMQP_URL REDIS_URL POOL TEXT
Prints "identical" when both watchers saw the same text and it is the record's result.
"""
import json
import sys
import uuid

import pika
import redis

LIMIT_SECONDS = 30


def ordered(event_id):
    attempt, sequence = event_id.split("-")
    return int(attempt), int(sequence)


class Watch:
    """The late-join algorithm of docs/protocol.md: the channel gives the speed, the log the truth."""

    def __init__(self, connection, job):
        self.redis = connection
        self.channel = "gen:{%s}" % job
        self.last = "0-1"
        self.text = ""
        self.ended = False
        self.subscription = connection.pubsub(ignore_subscribe_messages=False)
        self.subscription.subscribe(self.channel)
        while self.subscription.get_message(timeout=LIMIT_SECONDS)["type"] != "subscribe":
            pass

    def show(self, event):
        self.last = event["id"]
        if event["type"] == "started":
            self.text = ""
        if event["type"] == "chunk":
            self.text += event["text"]
        self.ended = event["type"] in ("completed", "failed", "cancelled", "expired")

    def read_log(self):
        for _, fields in self.redis.xrange(self.channel + ":events", min=self.last):
            event = json.loads(fields[b"e"])
            if ordered(event["id"]) > ordered(self.last):
                assert event["prev"] == self.last, (event, self.last)
                self.show(event)

    def run(self):
        self.read_log()
        while not self.ended:
            message = self.subscription.get_message(timeout=0.3)
            if message is None:
                self.read_log()
            elif message["type"] == "message":
                event = json.loads(message["data"])
                if ordered(event["id"]) <= ordered(self.last):
                    continue
                if event["prev"] == self.last:
                    self.show(event)
                else:
                    self.read_log()
        return self.text


def main():
    amqp_url, redis_url, pool, text = sys.argv[1:]
    job = uuid.uuid4().hex
    connection = redis.Redis.from_url(redis_url)
    early = Watch(connection, job)
    broker = pika.BlockingConnection(pika.URLParameters(amqp_url))
    channel = broker.channel()
    channel.confirm_delivery()
    body = json.dumps({"v": 1, "id": job, "kind": "rewrite", "input": {"text": text}})
    channel.basic_publish(
        "gen.jobs.v1",
        pool + ".interactive",
        body,
        pika.BasicProperties(content_type="application/json", delivery_mode=2, message_id=job, type="rewrite"),
        mandatory=True,
    )
    broker.close()
    while early.text == "" and not early.ended:
        message = early.subscription.get_message(timeout=LIMIT_SECONDS)
        if message["type"] == "message":
            event = json.loads(message["data"])
            if event["prev"] == early.last:
                early.show(event)
    late = Watch(connection, job)
    texts = {early.run(), late.run(), connection.hget("gen:{%s}:job" % job, "result").decode()}
    assert len(texts) == 1, texts
    assert text in texts.pop()
    print("identical")


main()
