# How the bucket's events reach the queue, or the function: see the variable source_kind.
#
# All ways stand, whichever is taken, so that a change of it is one call, which replaces all that the bucket names:
# https://docs.aws.amazon.com/AmazonS3/latest/API/API_PutBucketNotificationConfiguration.html
# What is still under way then arrives the way it came. A way that nobody takes costs nothing.

locals {
  # Everything that makes an object: uploads in one part and in many, copies, and forms.
  created = ["s3:ObjectCreated:*"]

  # S3's notifications take it URL-encoded, a blank as +; all others take it as it is:
  # https://docs.aws.amazon.com/AmazonS3/latest/userguide/notification-how-to-filtering.html
  prefix = var.prefix == "" ? null : replace(urlencode(var.prefix), "%2F", "/")

  # A bus is deaf for about five minutes after it was named, so that the queue is named too, until somebody says otherwise:
  # https://docs.aws.amazon.com/AmazonS3/latest/userguide/enable-event-notifications-eventbridge.html
  through_bus   = var.source_kind == "eventbridge"
  through_queue = var.source_kind == "sqs" || local.through_bus && !var.bus_alone
}

resource "aws_s3_bucket_notification" "objects" {
  count = var.notify ? 1 : 0

  bucket      = local.bucket
  eventbridge = local.through_bus

  dynamic "queue" {
    for_each = local.through_queue ? [aws_sqs_queue.events.arn] : []

    content {
      queue_arn     = queue.value
      events        = local.created
      filter_prefix = local.prefix
    }
  }

  dynamic "topic" {
    for_each = var.source_kind == "sns" ? [aws_sns_topic.events.arn] : []

    content {
      topic_arn     = topic.value
      events        = local.created
      filter_prefix = local.prefix
    }
  }

  dynamic "lambda_function" {
    for_each = var.source_kind == "direct" ? [aws_lambda_function.handler.arn] : []

    content {
      lambda_function_arn = lambda_function.value
      events              = local.created
      filter_prefix       = local.prefix
    }
  }

  # S3 tries each target when it is named, so it must be allowed by then; and what it sends must arrive from the first event
  # on: a topic without a subscriber, and a bus without a target, lose it.
  depends_on = [
    aws_sns_topic_policy.events,
    aws_sns_topic_subscription.queue,
    aws_cloudwatch_event_target.queue,
    aws_lambda_permission.bucket,
  ]
}

# By ARN: it is part of the function and goes with it, and the name does not change when the function is made anew.
# https://docs.aws.amazon.com/lambda/latest/dg/access-control-resource-based.html
# https://github.com/hashicorp/terraform-provider-aws/issues/46632
resource "aws_lambda_permission" "bucket" {
  statement_id   = "Bucket"
  action         = "lambda:InvokeFunction"
  function_name  = aws_lambda_function.handler.arn
  principal      = "s3.amazonaws.com"
  source_arn     = local.bucket_arn
  source_account = local.account
}

resource "aws_sns_topic" "events" {
  #checkov:skip=CKV_AWS_26:S3 cannot publish to a topic under Amazon's own key, and its events have no content of objects

  name = "${var.name}-events"
}

resource "aws_sns_topic_policy" "events" {
  arn    = aws_sns_topic.events.arn
  policy = data.aws_iam_policy_document.from_bucket["topic"].json
}

resource "aws_sns_topic_subscription" "queue" {
  topic_arn            = aws_sns_topic.events.arn
  protocol             = "sqs"
  endpoint             = aws_sqs_queue.events.arn
  raw_message_delivery = true

  # What the queue refuses.
  redrive_policy = jsonencode({ deadLetterTargetArn = aws_sqs_queue.dead_letters.arn })

  depends_on = [aws_sqs_queue_policy.dead_letters]
}

resource "aws_cloudwatch_event_rule" "objects" {
  name        = "${var.name}-objects"
  description = "New objects in ${local.bucket}"

  event_pattern = jsonencode({
    source      = ["aws.s3"]
    detail-type = ["Object Created"]

    detail = merge(
      { bucket = { name = [local.bucket] } },
      var.prefix == "" ? {} : { object = { key = [{ prefix = var.prefix }] } },
    )
  })
}

resource "aws_cloudwatch_event_target" "queue" {
  rule = aws_cloudwatch_event_rule.objects.name
  arn  = aws_sqs_queue.events.arn

  # What the queue refuses.
  dead_letter_config {
    arn = aws_sqs_queue.dead_letters.arn
  }

  depends_on = [aws_sqs_queue_policy.dead_letters]
}
