# Names and addresses that several files share.
#
# The addresses are put together here rather than read from what was made, so that every policy can be read in the plan.

locals {
  account   = data.aws_caller_identity.current.account_id
  partition = data.aws_partition.current.partition
  region    = data.aws_region.current.name

  function = var.name
  table    = coalesce(var.table_name, "${var.name}-claims")
  bucket   = var.create_bucket ? aws_s3_bucket.objects[0].bucket : var.bucket

  here = "${local.region}:${local.account}"

  bucket_arn             = "arn:${local.partition}:s3:::${local.bucket}"
  function_arn           = "arn:${local.partition}:lambda:${local.here}:function:${local.function}"
  table_arn              = "arn:${local.partition}:dynamodb:${local.here}:table/${local.table}"
  log_group_arn          = "arn:${local.partition}:logs:${local.here}:log-group:/aws/lambda/${local.function}"
  queue_arn              = "arn:${local.partition}:sqs:${local.here}:${var.name}-events"
  dead_letters_arn       = "arn:${local.partition}:sqs:${local.here}:${var.name}-dead-letters"
  jobs_arn               = "arn:${local.partition}:sqs:${local.here}:${var.name}-jobs"
  failed_invocations_arn = "arn:${local.partition}:sqs:${local.here}:${var.name}-failed-invocations"
  topic_arn              = "arn:${local.partition}:sns:${local.here}:${var.name}-events"
  rule_arn               = "arn:${local.partition}:events:${local.here}:rule/${var.name}-objects"
}
