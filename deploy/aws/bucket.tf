# The bucket whose objects are jobs.

resource "aws_s3_bucket" "objects" {
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

resource "aws_s3_bucket_public_access_block" "objects" {
  count = var.create_bucket ? 1 : 0

  bucket                  = aws_s3_bucket.objects[0].bucket
  block_public_acls       = true
  block_public_policy     = true
  ignore_public_acls      = true
  restrict_public_buckets = true
}
