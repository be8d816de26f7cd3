# The sweeper: what no redelivery covers is handed out again. Many at once do no harm.

resource "aws_scheduler_schedule" "sweep" {
  #checkov:skip=CKV_AWS_297:Its input is a constant that this file shows

  name                = "${var.name}-sweep"
  description         = "Hands out claims again whose holders died or failed and whose events nobody delivers"
  schedule_expression = var.sweep_schedule

  flexible_time_window {
    mode = "OFF"
  }

  target {
    arn      = aws_lambda_function.handler.arn
    role_arn = aws_iam_role.sweep.arn
    input    = jsonencode({ firstclaim = { sweep = {} } })

    # The next sweep does what this one did not.
    retry_policy {
      maximum_event_age_in_seconds = 300
      maximum_retry_attempts       = 2
    }

    dead_letter_config {
      arn = aws_sqs_queue.failed_invocations.arn
    }
  }

  depends_on = [aws_iam_role_policy.sweep]
}
