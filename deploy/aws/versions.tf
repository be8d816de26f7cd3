# Which Terraform and which provider this needs, and where it is applied.

terraform {
  # 1.9 lets the validation of one variable read another.
  required_version = ">= 1.9"

  required_providers {
    aws = {
      source  = "hashicorp/aws"
      version = ">= 5.100, < 6.0"
    }
  }
}

provider "aws" {
  region = var.region

  default_tags {
    tags = merge({ application = var.name }, var.tags)
  }
}

data "aws_caller_identity" "current" {}

data "aws_partition" "current" {}

data "aws_region" "current" {}
