# What a person must hear of.

# What is moved here is not counted as sent, so only its being there tells of it. It ends when the queue is empty.
# https://docs.aws.amazon.com/AWSSimpleQueueService/latest/SQSDeveloperGuide/sqs-dead-letter-queues.html
resource "aws_cloudwatch_metric_alarm" "dead_letters" {
  alarm_name          = "${var.name}-dead-letters"
  alarm_description   = "${aws_sqs_queue.dead_letters.name} is not empty: what is in it was given up and waits for a person."
  namespace           = "AWS/SQS"
  metric_name         = "ApproximateNumberOfMessagesVisible"
  dimensions          = { QueueName = aws_sqs_queue.dead_letters.name }
  statistic           = "Maximum"
  period              = 60
  evaluation_periods  = 1
  comparison_operator = "GreaterThanThreshold"
  threshold           = 0
  treat_missing_data  = "notBreaching"
  alarm_actions       = var.alarm_topic_arns
  ok_actions          = var.alarm_topic_arns
}

# Nothing takes these records away for 14 days: were their being there the alarm, later failures would tell nobody.
resource "aws_cloudwatch_metric_alarm" "failed_invocations" {
  alarm_name          = "${var.name}-failed-invocations"
  alarm_description   = "Lambda gave up direct events or sweeps, and put them into ${aws_sqs_queue.failed_invocations.name}."
  namespace           = "AWS/SQS"
  metric_name         = "NumberOfMessagesSent"
  dimensions          = { QueueName = aws_sqs_queue.failed_invocations.name }
  statistic           = "Sum"
  period              = 900
  evaluation_periods  = 1
  comparison_operator = "GreaterThanThreshold"
  threshold           = 0
  treat_missing_data  = "notBreaching"
  alarm_actions       = var.alarm_topic_arns
  ok_actions          = var.alarm_topic_arns
}

# A mapping that somebody, or Lambda, has turned off fails nothing and throttles nothing.
# https://docs.aws.amazon.com/lambda/latest/api/API_GetEventSourceMapping.html
resource "aws_cloudwatch_metric_alarm" "not_taken" {
  alarm_name          = "${var.name}-not-taken"
  alarm_description   = "Messages wait in ${aws_sqs_queue.events.name}, and nobody takes one: the function's mapping is off, or may not."
  evaluation_periods  = 1
  comparison_operator = "GreaterThanThreshold"
  threshold           = 0
  treat_missing_data  = "notBreaching"
  alarm_actions       = var.alarm_topic_arns
  ok_actions          = var.alarm_topic_arns

  metric_query {
    id          = "not_taken"
    label       = "messages wait and none is taken"
    expression  = "IF(waiting > 0 AND in_flight == 0 AND FILL(received, 0) == 0, 1, 0)"
    return_data = true
  }

  # Those that are worked on are in flight: a function with all its hands full takes none, either.
  dynamic "metric_query" {
    for_each = {
      waiting   = { name = "ApproximateNumberOfMessagesVisible", stat = "Minimum" }
      in_flight = { name = "ApproximateNumberOfMessagesNotVisible", stat = "Maximum" }
      received  = { name = "NumberOfMessagesReceived", stat = "Sum" }
    }

    content {
      id = metric_query.key

      metric {
        namespace   = "AWS/SQS"
        metric_name = metric_query.value.name
        dimensions  = { QueueName = aws_sqs_queue.events.name }
        stat        = metric_query.value.stat
        period      = 900
      }
    }
  }
}

# What is never received is in no dead-letter queue and in no claim, and expires: nothing else tells of it.
# https://docs.aws.amazon.com/AWSSimpleQueueService/latest/SQSDeveloperGuide/sqs-available-cloudwatch-metrics.html
resource "aws_cloudwatch_metric_alarm" "backlog" {
  alarm_name          = "${var.name}-backlog"
  alarm_description   = "Messages have waited in ${aws_sqs_queue.events.name} for half of the time that they are kept: they are not taken, or not fast enough."
  namespace           = "AWS/SQS"
  metric_name         = "ApproximateAgeOfOldestMessage"
  dimensions          = { QueueName = aws_sqs_queue.events.name }
  statistic           = "Maximum"
  period              = 300
  evaluation_periods  = 1
  comparison_operator = "GreaterThanThreshold"
  threshold           = var.retention_seconds / 2
  treat_missing_data  = "notBreaching"
  alarm_actions       = var.alarm_topic_arns
  ok_actions          = var.alarm_topic_arns
}

# Metrics of the program. A failed job of a queue is no failed invocation: its message is named in the answer.
locals {
  program_alarms = {
    stuck       = "Claims are stuck: sweeps had to hand them out again. `firstclaim claims list` names them."
    failed      = "Jobs fail, and are tried again. `firstclaim claims list --status failed` names them, and the log why."
    unavailable = "Events could not be settled, and come again: the table, the bucket, the job's program or the function's time was away. The log says which."
    rejected    = "Jobs were rejected and wait for a person. `firstclaim claims list --status rejected` names them."
    collapsed   = "Objects were rejected because another one has their job ID. `firstclaim claims list --status rejected` names them."
  }

  lambda_alarms = {
    Errors    = "Invocations of ${local.function} fail."
    Throttles = "Invocations of ${local.function} are throttled: there are more than its concurrency allows."
  }
}

resource "aws_cloudwatch_metric_alarm" "program" {
  for_each = local.program_alarms

  alarm_name          = "${var.name}-${each.key}"
  alarm_description   = each.value
  namespace           = "firstclaim"
  metric_name         = each.key
  dimensions          = { FunctionName = local.function }
  statistic           = "Sum"
  period              = 900
  evaluation_periods  = 1
  comparison_operator = "GreaterThanThreshold"
  threshold           = 0
  treat_missing_data  = "notBreaching"
  alarm_actions       = var.alarm_topic_arns
  ok_actions          = var.alarm_topic_arns
}

resource "aws_cloudwatch_metric_alarm" "function" {
  for_each = local.lambda_alarms

  alarm_name          = "${var.name}-${lower(each.key)}"
  alarm_description   = each.value
  namespace           = "AWS/Lambda"
  metric_name         = each.key
  dimensions          = { FunctionName = aws_lambda_function.handler.function_name }
  statistic           = "Sum"
  period              = 300
  evaluation_periods  = 1
  comparison_operator = "GreaterThanThreshold"
  threshold           = 0
  treat_missing_data  = "notBreaching"
  alarm_actions       = var.alarm_topic_arns
  ok_actions          = var.alarm_topic_arns
}

moved {
  from = aws_cloudwatch_metric_alarm.queue_not_empty["dead-letters"]
  to   = aws_cloudwatch_metric_alarm.dead_letters
}

moved {
  from = aws_cloudwatch_metric_alarm.queue_not_empty["failed-invocations"]
  to   = aws_cloudwatch_metric_alarm.failed_invocations
}
