# What the function and the schedule may do, and nothing else: no wildcard action, no bare `*` resource.

data "aws_iam_policy_document" "function_trust" {
  statement {
    actions = ["sts:AssumeRole"]

    principals {
      type        = "Service"
      identifiers = ["lambda.amazonaws.com"]
    }
  }
}

resource "aws_iam_role" "function" {
  name_prefix        = "${var.name}-function-"
  description        = "What ${local.function} may do"
  assume_role_policy = data.aws_iam_policy_document.function_trust.json
}

data "aws_iam_policy_document" "function" {
  statement {
    sid       = "Claims"
    actions   = ["dynamodb:PutItem", "dynamodb:GetItem"]
    resources = [local.table_arn]
  }

  # What is open, for the sweeper.
  statement {
    sid       = "OpenClaims"
    actions   = ["dynamodb:Query"]
    resources = ["${local.table_arn}/index/open"]
  }

  statement {
    sid       = "Objects"
    actions   = ["s3:GetObject", "s3:GetObjectVersion"]
    resources = ["${local.bucket_arn}/${var.prefix}*"]
  }

  # Without it, S3 answers 403 for an object that is gone, and 403 is delivered again, again and again.
  statement {
    sid       = "Bucket"
    actions   = ["s3:ListBucket"]
    resources = [local.bucket_arn]

    # Binding it to the prefix keeps S3 from saying that an object is gone, since a request for one object has no prefix to
    # compare: the program lists what begins with its key then, which this allows.
    # https://docs.aws.amazon.com/AmazonS3/latest/userguide/amazon-s3-policy-keys.html
    dynamic "condition" {
      for_each = var.prefix == "" ? [] : [var.prefix]

      content {
        test     = "StringLike"
        variable = "s3:prefix"
        values   = ["${condition.value}*"]
      }
    }
  }

  dynamic "statement" {
    for_each = var.object_key_arn[*]

    content {
      sid       = "ObjectKey"
      actions   = ["kms:Decrypt"]
      resources = [statement.value]
    }
  }

  # Lambda receives with the function's own role; the sweeper sends.
  statement {
    sid = "Events"

    actions = [
      "sqs:ReceiveMessage",
      "sqs:DeleteMessage",
      "sqs:ChangeMessageVisibility",
      "sqs:GetQueueAttributes",
      "sqs:SendMessage",
    ]

    resources = [local.queue_arn]
  }

  statement {
    sid       = "FailedInvocations"
    actions   = ["sqs:SendMessage"]
    resources = [local.failed_invocations_arn]
  }

  dynamic "statement" {
    for_each = var.dispatch ? [local.jobs_arn] : []

    content {
      sid       = "Jobs"
      actions   = ["sqs:SendMessage"]
      resources = [statement.value]
    }
  }

  statement {
    sid       = "Log"
    actions   = ["logs:CreateLogStream", "logs:PutLogEvents"]
    resources = ["${local.log_group_arn}:log-stream:*"]
  }
}

resource "aws_iam_role_policy" "function" {
  name   = "firstclaim"
  role   = aws_iam_role.function.id
  policy = data.aws_iam_policy_document.function.json
}

resource "aws_iam_role_policy_attachment" "job" {
  for_each = toset(var.job_policy_arns)

  role       = aws_iam_role.function.name
  policy_arn = each.value
}

data "aws_iam_policy_document" "sweep_trust" {
  statement {
    actions = ["sts:AssumeRole"]

    principals {
      type        = "Service"
      identifiers = ["scheduler.amazonaws.com"]
    }

    condition {
      test     = "StringEquals"
      variable = "aws:SourceAccount"
      values   = [local.account]
    }
  }
}

resource "aws_iam_role" "sweep" {
  name_prefix        = "${var.name}-sweep-"
  description        = "Starts the sweeps of ${local.function}"
  assume_role_policy = data.aws_iam_policy_document.sweep_trust.json
}

data "aws_iam_policy_document" "sweep" {
  statement {
    sid       = "Sweep"
    actions   = ["lambda:InvokeFunction"]
    resources = [local.function_arn]
  }

  statement {
    sid       = "FailedInvocations"
    actions   = ["sqs:SendMessage"]
    resources = [local.failed_invocations_arn]
  }
}

resource "aws_iam_role_policy" "sweep" {
  name   = "firstclaim"
  role   = aws_iam_role.sweep.id
  policy = data.aws_iam_policy_document.sweep.json
}
