# The table of claims. Its attribute names are those of the published handler; all others are written by the program.

resource "aws_dynamodb_table" "claims" {
  #checkov:skip=CKV_AWS_119:A key of one's own costs, and whoever lacks it loses what it locks: the service's own key encrypts it

  name         = local.table
  billing_mode = "PAY_PER_REQUEST"
  hash_key     = "job_id"

  attribute {
    name = "job_id"
    type = "S"
  }

  attribute {
    name = "open_shard"
    type = "S"
  }

  attribute {
    name = "open_since"
    type = "S"
  }

  # Only claims that are not done carry its attributes: listing them reads none of the others.
  global_secondary_index {
    name            = "open"
    hash_key        = "open_shard"
    range_key       = "open_since"
    projection_type = "KEYS_ONLY"
  }

  # Only done claims carry `expires_at`.
  ttl {
    attribute_name = "expires_at"
    enabled        = true
  }

  point_in_time_recovery {
    enabled = true
  }

  server_side_encryption {
    enabled = true
  }

  deletion_protection_enabled = var.protect
}
