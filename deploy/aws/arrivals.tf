# How the bucket's events reach the queue, or the function: see the variable source_kind.

locals {
  # Everything that makes an object: uploads in one part and in many, copies, and forms.
  created = ["s3:ObjectCreated:*"]

  # S3's notifications take it URL-encoded, a blank as +; all others take it as it is:
  # https://docs.aws.amazon.com/AmazonS3/latest/userguide/notification-how-to-filtering.html
  prefix = var.prefix == "" ? null : replace(urlencode(var.prefix), "%2F", "/")

  through_topic = var.source_kind == "sns" ? 1 : 0
  through_bus   = var.source_kind == "eventbridge" ? 1 : 0
  direct        = var.source_kind == "direct" ? 1 : 0
}

resource "aws_s3_bucket_notification" "objects" {
  count = var.notify ? 1 : 0

  bucket      = local.bucket
  eventbridge = var.source_kind == "eventbridge"

  dynamic "queue" {
    for_each = var.source_kind == "sqs" ? [aws_sqs_queue.events.arn] : []

    content {
      queue_arn     = queue.value
      events        = local.created
      filter_prefix = local.prefix
    }
  }

  dynamic "topic" {
    for_each = aws_sns_topic.events[*].arn

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
  count = local.direct

  statement_id   = "Bucket"
  action         = "lambda:InvokeFunction"
  function_name  = aws_lambda_function.handler.arn
  principal      = "s3.amazonaws.com"
  source_arn     = local.bucket_arn
  source_account = local.account
}

resource "aws_sns_topic" "events" {
  count = local.through_topic

  name = "${var.name}-events"
}

resource "aws_sns_topic_policy" "events" {
  count = local.through_topic

  arn    = aws_sns_topic.events[0].arn
  policy = data.aws_iam_policy_document.from_bucket["topic"].json
}

resource "aws_sns_topic_subscription" "queue" {
  count = local.through_topic

  topic_arn            = aws_sns_topic.events[0].arn
  protocol             = "sqs"
  endpoint             = aws_sqs_queue.events.arn
  raw_message_delivery = true

  # What the queue refuses.
  redrive_policy = jsonencode({ deadLetterTargetArn = aws_sqs_queue.dead_letters.arn })

  depends_on = [aws_sqs_queue_policy.dead_letters]
}

resource "aws_cloudwatch_event_rule" "objects" {
  count = local.through_bus

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
  count = local.through_bus

  rule = aws_cloudwatch_event_rule.objects[0].name
  arn  = aws_sqs_queue.events.arn

  # What the queue refuses.
  dead_letter_config {
    arn = aws_sqs_queue.dead_letters.arn
  }

  depends_on = [aws_sqs_queue_policy.dead_letters]
}
