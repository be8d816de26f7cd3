"""moto's server for tests: one call at a time, on a free port.

moto checks a condition and writes in two steps, and serves each call from a thread: of many racing first writers several
would win. DynamoDB is atomic, so here a lock is held around each call. The port is the first line on standard output.
"""

import io
import json
import logging
import threading

from moto.s3.responses import S3Response
from moto.server import DomainDispatcherApplication, create_backend_app
from moto.sqs.models import Queue
from werkzeug.serving import make_server

LOCK = threading.Lock()


ATTRIBUTES = Queue.attributes


def attributes_as_written(queue):
    """SQS gives a queue's redrive policy back as it was written; moto with spaces, and Terraform would write it anew."""
    attributes = ATTRIBUTES.fget(queue)
    if attributes.get("RedrivePolicy"):
        policy = json.loads(attributes["RedrivePolicy"])
        attributes["RedrivePolicy"] = json.dumps(policy, separators=(",", ":"))
    return attributes


NOTIFICATION = S3Response.get_bucket_notification


def notification_with_its_bus(response):
    """S3 says whether a bucket's events go to the bus; moto does not, and Terraform would see no difference."""
    named = response.backend.get_bucket_notification_configuration(response.bucket_name)
    if named is None or named.event_bridge is None:
        return NOTIFICATION(response)
    serialized = response.serialized

    def with_bus(result):
        result.result["EventBridgeConfiguration"] = {}
        return serialized(result)

    response.serialized = with_bus
    return NOTIFICATION(response)


class OneAtATime:
    """A WSGI application that is called by one thread at a time, its whole answer included."""

    def __init__(self, application):
        self.application = application

    def __call__(self, environ, start_response):
        # Read before the lock is held: a client that goes away in the middle would keep all others waiting.
        body = environ["wsgi.input"].read(int(environ.get("CONTENT_LENGTH") or 0))
        if "HTTP_TRANSFER_ENCODING" not in environ:
            environ["wsgi.input"] = io.BytesIO(body)
        with LOCK:
            answer = self.application(environ, start_response)
            try:
                return [b"".join(answer)]
            finally:
                if hasattr(answer, "close"):
                    answer.close()


def main():
    logging.getLogger("werkzeug").setLevel(logging.ERROR)
    Queue.attributes = property(attributes_as_written)
    S3Response.get_bucket_notification = notification_with_its_bus
    application = OneAtATime(DomainDispatcherApplication(create_backend_app))
    server = make_server("127.0.0.1", 0, application, threaded=True)
    print(server.server_port, flush=True)
    server.serve_forever()


if __name__ == "__main__":
    main()
