"""What an operator does to queues, for tests: queue_tool.py URL full|purge|delete QUEUE"""
import sys

import pika

url, action, queue = sys.argv[1:]
channel = pika.BlockingConnection(pika.URLParameters(url)).channel()
if action == "full":
    # A lane's queue that takes nothing: the arguments stand for an operator's policy.
    channel.queue_declare(queue, durable=True, arguments={
        "x-queue-type": "quorum", "x-max-length": 1, "x-overflow": "reject-publish"})
    channel.queue_bind(queue, "gen.jobs.v1", queue.removeprefix("gen.jobs.v1."))
    channel.confirm_delivery()
    try:
        # The limit is overshot by some.
        for _ in range(10):
            channel.basic_publish("", queue, b"filler")
    except pika.exceptions.NackError:
        pass
elif action == "purge":
    channel.queue_purge(queue)
elif action == "delete":
    channel.queue_delete(queue)
channel.connection.close()
