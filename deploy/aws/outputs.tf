# What one needs to use it.

output "bucket" {
  description = "The bucket whose objects are jobs."
  value       = local.bucket
}

output "table" {
  description = "The table of claims, for --store dynamodb://TABLE."
  value       = aws_dynamodb_table.claims.name
}

output "function" {
  description = "The function."
  value       = aws_lambda_function.handler.function_name
}

output "role" {
  description = "The function's role."
  value       = aws_iam_role.function.name
}

output "queue_url" {
  description = "The queue of events."
  value       = aws_sqs_queue.events.url
}

output "queue_arn" {
  description = "The queue of events."
  value       = aws_sqs_queue.events.arn
}

output "dead_letters_url" {
  description = "The dead-letter queue: messages that were received too often."
  value       = aws_sqs_queue.dead_letters.url
}

output "dead_letters_arn" {
  description = "The dead-letter queue, for `aws sqs start-message-move-task`."
  value       = aws_sqs_queue.dead_letters.arn
}

output "failed_invocations_url" {
  description = "What Lambda gave up of direct events and sweeps."
  value       = aws_sqs_queue.failed_invocations.url
}

output "jobs_url" {
  description = "The queue that jobs are handed to (dispatch = true)."
  value       = one(aws_sqs_queue.jobs[*].url)
}

output "jobs_arn" {
  description = "The queue that jobs are handed to, for the policy of whoever takes them."
  value       = one(aws_sqs_queue.jobs[*].arn)
}

output "notification_target" {
  description = "What a bucket's notification must name if it is not set here (notify = false). Empty for eventbridge, which names nothing."
  value = {
    sqs         = aws_sqs_queue.events.arn
    direct      = aws_lambda_function.handler.arn
    sns         = aws_sns_topic.events.arn
    eventbridge = ""
  }[var.source_kind]
}

output "log_group" {
  description = "The function's log."
  value       = aws_cloudwatch_log_group.function.name
}

output "environment" {
  description = "The function's environment variables."
  value       = merge(local.environment, var.environment)

  # What people set for their jobs may be a password: https://developer.hashicorp.com/terraform/language/values/outputs.
  # AWS advises against keeping one there at all: https://docs.aws.amazon.com/lambda/latest/dg/configuration-envvars.html.
  sensitive = true
}
