# The bucket whose objects are jobs.

resource "aws_s3_bucket" "objects" {
  #checkov:skip=CKV_AWS_18:Logs of access need a second bucket, which is for the account's owner to name
  #checkov:skip=CKV_AWS_144:Jobs are run where the objects are; a copy elsewhere is for the data's owner to decide
  #checkov:skip=CKV_AWS_145:A key of one's own costs, and whoever lacks it loses what it locks: the service's own key encrypts it

  count = var.create_bucket ? 1 : 0

  bucket        = var.bucket
  bucket_prefix = var.bucket == null ? "${var.name}-" : null
  force_destroy = !var.protect
}

resource "aws_s3_bucket_versioning" "objects" {
  count = var.create_bucket && var.versioning ? 1 : 0

  bucket = aws_s3_bucket.objects[0].bucket

  versioning_configuration {
    status = "Enabled"
  }
}

# What nobody sees is paid for all the same: parts of uploads that were given up, and versions that are not the newest.
# https://docs.aws.amazon.com/AmazonS3/latest/userguide/intro-lifecycle-rules.html
resource "aws_s3_bucket_lifecycle_configuration" "objects" {
  count = var.create_bucket ? 1 : 0

  bucket = aws_s3_bucket.objects[0].bucket

  rule {
    id     = "given-up-uploads"
    status = "Enabled"

    filter {}

    abort_incomplete_multipart_upload {
      days_after_initiation = 7
    }
  }

  dynamic "rule" {
    for_each = var.versioning ? var.old_versions_days[*] : []

    content {
      id     = "old-versions"
      status = "Enabled"

      filter {}

      noncurrent_version_expiration {
        noncurrent_days = rule.value
      }

      expiration {
        expired_object_delete_marker = true
      }
    }
  }

  # Its rules are of versions.
  depends_on = [aws_s3_bucket_versioning.objects]
}

resource "aws_s3_bucket_public_access_block" "objects" {
  count = var.create_bucket ? 1 : 0

  bucket                  = aws_s3_bucket.objects[0].bucket
  block_public_acls       = true
  block_public_policy     = true
  ignore_public_acls      = true
  restrict_public_buckets = true
}
