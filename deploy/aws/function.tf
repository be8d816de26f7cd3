# The function, what wakes it, and its log.

locals {
  zip = coalesce(var.zip, "${path.module}/../../target/dist/aws/bootstrap-${var.architecture}.zip")

  # The queue's mapping does not heed what is reserved for the function: it takes messages that are throttled then.
  # https://docs.aws.amazon.com/lambda/latest/dg/services-sqs-scaling.html
  default_concurrency = var.reserved_concurrency == -1 ? 100 : min(100, var.reserved_concurrency)
  max_concurrency     = coalesce(var.max_concurrency, local.default_concurrency)

  environment = merge({
    DEDUP_TABLE              = aws_dynamodb_table.claims.name
    DEDUP_TTL_SECONDS        = tostring(var.done_ttl_seconds)
    FIRSTCLAIM_LEASE_SECONDS = tostring(var.lease_seconds)
    FIRSTCLAIM_MAX_ATTEMPTS  = tostring(var.max_attempts)
    FIRSTCLAIM_ALLOW         = "s3:${local.bucket}"
    FIRSTCLAIM_REDRIVE_QUEUE = aws_sqs_queue.events.url
    # A failed job's message comes again once it is visible: until then a sweep would only send it twice.
    FIRSTCLAIM_SWEEP_GRACE_SECONDS = tostring(local.visibility + 900)
    FIRSTCLAIM_LOG                 = var.log_level
    FIRSTCLAIM_LOG_FORMAT          = "json"
  }, var.dispatch ? { FIRSTCLAIM_DISPATCH_QUEUE = aws_sqs_queue.jobs[0].url } : {})
}

resource "aws_lambda_function" "handler" {
  #checkov:skip=CKV_AWS_116:Destinations on failure are what Lambda recommends instead, and are set: aws_lambda_function_event_invoke_config
  #checkov:skip=CKV_AWS_117:It calls public endpoints of Amazon's alone; a job that needs a network of its own can say so here
  #checkov:skip=CKV_AWS_272:The zip is built by whoever applies this, who has the key, too: a signature would prove nothing
  #checkov:skip=CKV_AWS_173:A key of one's own costs, and whoever lacks it loses what it locks: the service's own key encrypts it. Passwords do not belong there at all
  #checkov:skip=CKV_AWS_50:The program sends no traces, and its log says what became of each event

  function_name = local.function
  description   = "Turns storage events into exactly-once jobs"
  role          = aws_iam_role.function.arn
  architectures = [var.architecture]

  package_type     = var.image == null ? "Zip" : "Image"
  image_uri        = var.image
  filename         = var.image == null ? local.zip : null
  source_code_hash = var.image == null && fileexists(local.zip) ? filebase64sha256(local.zip) : null
  runtime          = var.image == null ? "provided.al2023" : null
  handler          = var.image == null ? "bootstrap" : null

  memory_size                    = var.memory_megabytes
  timeout                        = var.timeout_seconds
  reserved_concurrent_executions = var.reserved_concurrency

  ephemeral_storage {
    size = var.disk_megabytes
  }

  environment {
    variables = merge(local.environment, var.environment)
  }

  lifecycle {
    precondition {
      condition     = var.image != null || fileexists(local.zip)
      error_message = "There is no ${local.zip}: `cargo xtask dist aws ${var.architecture}` makes it. Or name another by zip, or an image."
    }
  }

  # It makes its log group by itself otherwise, without a retention, and is refused what it may not.
  depends_on = [aws_cloudwatch_log_group.function, aws_iam_role_policy.function]
}

resource "aws_cloudwatch_log_group" "function" {
  #checkov:skip=CKV_AWS_158:A key of one's own costs, and whoever lacks it loses what it locks: the service's own key encrypts it
  #checkov:skip=CKV_AWS_338:The claims are the record. How long the log is kept is log_retention_days

  name              = "/aws/lambda/${local.function}"
  retention_in_days = var.log_retention_days
}

# Without ReportBatchItemFailures, Lambda deletes the messages of a batch of which one failed.
resource "aws_lambda_event_source_mapping" "queue" {
  event_source_arn                   = aws_sqs_queue.events.arn
  function_name                      = aws_lambda_function.handler.arn
  function_response_types            = ["ReportBatchItemFailures"]
  batch_size                         = var.batch_size
  maximum_batching_window_in_seconds = var.batching_window_seconds
  enabled                            = var.poll

  scaling_config {
    maximum_concurrency = local.max_concurrency
  }
}

# Invocations without a queue: direct events and sweeps. By ARN, as the bucket's permission is, and for the same reason.
resource "aws_lambda_function_event_invoke_config" "handler" {
  function_name                = aws_lambda_function.handler.arn
  maximum_event_age_in_seconds = 21600
  maximum_retry_attempts       = 2

  destination_config {
    on_failure {
      destination = aws_sqs_queue.failed_invocations.arn
    }
  }
}
