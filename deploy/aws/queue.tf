# The queue of events, where redrives enter too, and where messages go that nobody could take.

locals {
  visibility = coalesce(var.visibility_seconds, 6 * var.timeout_seconds + var.batching_window_seconds)

  # Who may send to the queue for the bucket's events: the service, and which of the account's things it must act for.
  relays = {
    Topic = { service = "sns.amazonaws.com", for = local.topic_arn }
    Bus   = { service = "events.amazonaws.com", for = local.rule_arn }
  }
}

resource "aws_sqs_queue" "events" {
  name                       = "${var.name}-events"
  visibility_timeout_seconds = local.visibility
  message_retention_seconds  = var.retention_seconds
  receive_wait_time_seconds  = 20
  sqs_managed_sse_enabled    = true
  policy                     = data.aws_iam_policy_document.queue.json

  redrive_policy = jsonencode({
    deadLetterTargetArn = aws_sqs_queue.dead_letters.arn
    maxReceiveCount     = var.max_receives
  })

  lifecycle {
    precondition {
      condition     = local.visibility >= var.timeout_seconds
      error_message = "visibility_seconds (${local.visibility}) must be at least timeout_seconds (${var.timeout_seconds}): Lambda refuses the queue otherwise."
    }

    precondition {
      condition     = local.visibility <= 43200
      error_message = "visibility_seconds (${local.visibility}) must be at most 43,200: SQS allows no more."
    }

    precondition {
      condition     = var.lease_seconds < (var.max_receives - 1) * local.visibility
      error_message = "lease_seconds (${var.lease_seconds}) must be less than (max_receives - 1) × visibility_seconds (${(var.max_receives - 1) * local.visibility}): a dead holder's message would be given up before its lease ends."
    }

    # While another holds the job, a message comes back when that lease ends, and a lease is renewed when a third of it is over.
    precondition {
      condition     = var.timeout_seconds < (var.max_receives - 1) * min(local.visibility, var.lease_seconds * 2 / 3)
      error_message = "max_receives (${var.max_receives}) is too small: the duplicate of a job that takes timeout_seconds (${var.timeout_seconds}) would be given up while the job runs. It must be more than ${floor(var.timeout_seconds / min(local.visibility, var.lease_seconds * 2 / 3)) + 1}."
    }

    precondition {
      condition     = var.max_receives * local.visibility < var.retention_seconds
      error_message = "max_receives × visibility_seconds (${var.max_receives * local.visibility}) must be less than retention_seconds (${var.retention_seconds}): messages would expire before they reach the dead-letter queue."
    }
  }
}

# Its messages keep the time at which they were sent: it must keep them for longer than the queue they come from.
resource "aws_sqs_queue" "dead_letters" {
  name                      = "${var.name}-dead-letters"
  message_retention_seconds = 1209600
  sqs_managed_sse_enabled   = true
}

# The bucket may send, to the queue or to a topic before it.
data "aws_iam_policy_document" "from_bucket" {
  for_each = {
    queue = { action = "sqs:SendMessage", to = local.queue_arn }
    topic = { action = "sns:Publish", to = local.topic_arn }
  }

  statement {
    sid       = "Bucket"
    actions   = [each.value.action]
    resources = [each.value.to]

    principals {
      type        = "Service"
      identifiers = ["s3.amazonaws.com"]
    }

    condition {
      test     = "ArnEquals"
      variable = "aws:SourceArn"
      values   = [local.bucket_arn]
    }

    # A bucket's ARN does not say whose it is.
    condition {
      test     = "StringEquals"
      variable = "aws:SourceAccount"
      values   = [local.account]
    }
  }
}

# What is between the bucket and the queue may send to the queue, and to the dead-letter queue what that refused.
data "aws_iam_policy_document" "from_relay" {
  for_each = {
    queue        = local.queue_arn
    dead_letters = local.dead_letters_arn
  }

  dynamic "statement" {
    for_each = local.relays

    content {
      sid       = statement.key
      actions   = ["sqs:SendMessage"]
      resources = [each.value]

      principals {
        type        = "Service"
        identifiers = [statement.value.service]
      }

      condition {
        test     = "ArnEquals"
        variable = "aws:SourceArn"
        values   = [statement.value.for]
      }
    }
  }
}

resource "aws_sqs_queue_policy" "dead_letters" {
  queue_url = aws_sqs_queue.dead_letters.url
  policy    = data.aws_iam_policy_document.from_relay["dead_letters"].json
}

resource "aws_sqs_queue_redrive_allow_policy" "dead_letters" {
  queue_url = aws_sqs_queue.dead_letters.url

  redrive_allow_policy = jsonencode({
    redrivePermission = "byQueue"
    sourceQueueArns   = [local.queue_arn]
  })
}

# Where Lambda puts what it gave up of invocations without a queue: direct events and sweeps.
resource "aws_sqs_queue" "failed_invocations" {
  name                      = "${var.name}-failed-invocations"
  message_retention_seconds = 1209600
  sqs_managed_sse_enabled   = true
}

# Where jobs are handed to. Whoever takes them is not made here.
resource "aws_sqs_queue" "jobs" {
  count = var.dispatch ? 1 : 0

  name                      = "${var.name}-jobs"
  message_retention_seconds = 1209600
  sqs_managed_sse_enabled   = true
}

data "aws_iam_policy_document" "queue" {
  # Those of all ways whatever the source is: while it is changed, events come the way they came.
  source_policy_documents = [
    data.aws_iam_policy_document.from_bucket["queue"].json,
    data.aws_iam_policy_document.from_relay["queue"].json,
  ]

  statement {
    sid       = "Encrypted"
    effect    = "Deny"
    actions   = ["sqs:SendMessage", "sqs:ReceiveMessage"]
    resources = [local.queue_arn]

    principals {
      type        = "*"
      identifiers = ["*"]
    }

    condition {
      test     = "Bool"
      variable = "aws:SecureTransport"
      values   = ["false"]
    }
  }
}
