# What can be set. Every variable but `bucket` (and that only for an existing one) has a default that can be applied.

variable "name" {
  description = "Name of the deployment: everything in it is called NAME or NAME-something."
  type        = string
  default     = "firstclaim"

  validation {
    condition     = can(regex("^[a-z][a-z0-9-]{0,22}[a-z0-9]$", var.name))
    error_message = "The name must have 2 to 24 characters of a-z, 0-9 and -, begin with a letter and not end with -."
  }
}

variable "region" {
  description = "Region to deploy to. Null: the one of the environment (AWS_REGION) or the profile."
  type        = string
  default     = null
}

variable "tags" {
  description = "Tags for everything."
  type        = map(string)
  default     = {}
}

variable "protect" {
  description = "Whether the table and a bucket with objects in it are kept from being destroyed. See \"Remove it\" in the README."
  type        = bool
  default     = true
}

# Where objects come from.

variable "bucket" {
  description = "Name of the bucket whose objects are jobs. Null: NAME and a random suffix."
  type        = string
  default     = null

  validation {
    condition     = var.create_bucket || var.bucket != null
    error_message = "An existing bucket (create_bucket = false) must be named by the variable bucket."
  }
}

variable "create_bucket" {
  description = "Whether the bucket is made. False: it exists, in this region, and only its notifications are set."
  type        = bool
  default     = true
}

variable "versioning" {
  description = "Whether the bucket that is made keeps versions. Without them a second upload of the same bytes cannot be told from a second event of the first."
  type        = bool
  default     = true
}

variable "old_versions_days" {
  description = "How long the bucket that is made keeps versions that were overwritten or deleted. Null: for ever."
  type        = number
  default     = 90

  validation {
    # An event names its version, and may come as late as this.
    condition     = var.old_versions_days == null ? true : floor(var.old_versions_days) == var.old_versions_days && var.old_versions_days * 86400 >= var.done_ttl_seconds
    error_message = "old_versions_days must be a whole number, and at least done_ttl_seconds (${ceil(var.done_ttl_seconds / 86400)} days): an event that comes late still names its version."
  }
}

variable "notify" {
  description = "Whether the bucket's notifications are set here. They replace all others that the bucket has: set false for a bucket with notifications of its own, and add one to the output `notification_target` there."
  type        = bool
  default     = true
}

variable "prefix" {
  description = "Only objects whose keys begin with this, as it is written and not URL-encoded, are jobs, and can be read. Empty: all."
  type        = string
  default     = ""

  validation {
    # In a policy these characters are patterns.
    condition     = !can(regex("[*?$]", var.prefix))
    error_message = "The prefix must not contain *, ? or $."
  }
}

variable "object_key_arn" {
  description = "ARN of the KMS key that the bucket's objects are encrypted with, if it is one of your own."
  type        = string
  default     = null
}

variable "source_kind" {
  description = "How events reach the function: sqs (bucket → queue → function), direct (bucket → function), sns (bucket → topic → queue → function) or eventbridge (bucket → event bus → queue → function)."
  type        = string
  default     = "sqs"

  validation {
    condition     = contains(["sqs", "direct", "sns", "eventbridge"], var.source_kind)
    error_message = "source_kind must be sqs, direct, sns or eventbridge."
  }
}

variable "bus_alone" {
  description = "With source_kind = eventbridge: whether the bucket names the bus alone. False: the queue, too, and every event comes twice, which runs no job twice. It may be true ten minutes after the apply that named the bus, which is deaf until then."
  type        = bool
  default     = false
  nullable    = false

  validation {
    # Kept from one change of source to the next, it would be true too early.
    condition     = !var.bus_alone || var.source_kind == "eventbridge"
    error_message = "bus_alone must not be true unless source_kind is eventbridge."
  }
}

# The function.

variable "architecture" {
  description = "Processor of the function: x86_64 or arm64. The zip or image must be built for it."
  type        = string
  default     = "x86_64"

  validation {
    condition     = contains(["x86_64", "arm64"], var.architecture)
    error_message = "architecture must be x86_64 or arm64."
  }
}

variable "zip" {
  description = "Path of the zip that `cargo xtask dist aws` makes. Null: where it puts it, for the architecture."
  type        = string
  default     = null
}

variable "image" {
  description = "URI of a container image in ECR to run instead of the zip, for jobs that start programs such as gdalwarp."
  type        = string
  default     = null
}

variable "memory_megabytes" {
  description = "Memory of the function. Its share of a processor grows with it: 1,769 is one whole."
  type        = number
  default     = 1024

  validation {
    condition     = var.memory_megabytes >= 128 && var.memory_megabytes <= 10240
    error_message = "The function must have 128 to 10,240 MB of memory."
  }
}

variable "disk_megabytes" {
  description = "Size of the function's /tmp, where local copies of objects are put."
  type        = number
  default     = 512

  validation {
    condition     = var.disk_megabytes >= 512 && var.disk_megabytes <= 10240
    error_message = "The function must have 512 to 10,240 MB of disk."
  }
}

variable "timeout_seconds" {
  description = "How long one invocation may take. It must be enough for the longest job, and for all jobs of a batch."
  type        = number
  default     = 300

  validation {
    condition     = var.timeout_seconds >= 10 && var.timeout_seconds <= 900
    error_message = "The timeout must be 10 to 900 seconds: Lambda allows no more."
  }
}

variable "reserved_concurrency" {
  description = "Concurrent invocations kept for the function, which is also its limit. -1: neither. To stop the function set poll = false."
  type        = number
  default     = -1
  nullable    = false

  validation {
    # The queue starts two at least: https://docs.aws.amazon.com/lambda/latest/dg/services-sqs-scaling.html
    condition     = var.reserved_concurrency == -1 || var.reserved_concurrency >= 2
    error_message = "reserved_concurrency must be -1, or at least 2: messages that are taken and then throttled end in the dead-letter queue, and no job has seen them. To stop the function set poll = false."
  }
}

variable "environment" {
  description = "Further environment variables of the function, for its jobs. Not for passwords: plans, the state and everybody who may read the function show them. The program's own are set here, but for FIRSTCLAIM_CONCURRENCY, and FIRSTCLAIM_DISPATCH_QUEUE for a queue of your own, which a policy in job_policy_arns must let the function send to."
  type        = map(string)
  default     = {}

  validation {
    # What the function does not know, it refuses; what another variable sets would no longer fit the rest.
    condition = alltrue([
      for name in keys(var.environment) :
      !can(regex("^(FIRSTCLAIM_|DEDUP_)", name)) || contains(["FIRSTCLAIM_CONCURRENCY", "FIRSTCLAIM_DISPATCH_QUEUE"], name)
    ])
    error_message = "environment must not have FIRSTCLAIM_ or DEDUP_ variables but FIRSTCLAIM_CONCURRENCY and FIRSTCLAIM_DISPATCH_QUEUE: the others have variables here."
  }

  validation {
    condition     = !(var.dispatch && contains(keys(var.environment), "FIRSTCLAIM_DISPATCH_QUEUE"))
    error_message = "environment must not have FIRSTCLAIM_DISPATCH_QUEUE while dispatch is true, which sets it."
  }
}

variable "dispatch" {
  description = "Whether a queue is made that jobs are handed to, for a pipeline that says dispatch = true: NAME-jobs, which the function may send to."
  type        = bool
  default     = false
  nullable    = false
}

variable "job_policy_arns" {
  description = "ARNs of policies for the function's role, for what its jobs do: writing to another bucket, say."
  type        = list(string)
  default     = []
}

variable "log_level" {
  description = "Log filter (FIRSTCLAIM_LOG), e.g. info, or info,identity_core=debug. Events are told at info."
  type        = string
  default     = "info"

  validation {
    condition     = can(regex("^(off|error|warn|info|debug|trace)(,[a-z0-9_:]+=(off|error|warn|info|debug|trace))*$", var.log_level))
    error_message = "log_level must be off, error, warn, info, debug or trace, and then, after commas, MODULE=LEVEL."
  }
}

variable "log_retention_days" {
  description = "How long logs are kept."
  type        = number
  default     = 30
}

# Claims.

variable "table_name" {
  description = "Name of the table of claims. Null: NAME-claims."
  type        = string
  default     = null

  validation {
    condition     = var.table_name == null ? true : can(regex("^[A-Za-z0-9._-]{3,255}$", var.table_name))
    error_message = "A table's name has 3 to 255 letters, digits, dots, dashes and underscores."
  }
}

variable "lease_seconds" {
  description = "How long a claim is its holder's alone unless renewed (FIRSTCLAIM_LEASE_SECONDS): how long a crash delays its job."
  type        = number
  default     = 120

  validation {
    condition     = var.lease_seconds >= 10 && var.lease_seconds <= 86400 && floor(var.lease_seconds) == var.lease_seconds
    error_message = "The lease must be 10 to 86,400 whole seconds: it is renewed while the job runs."
  }
}

variable "max_attempts" {
  description = "Attempts at a job beyond this many are rejected as exhausted (FIRSTCLAIM_MAX_ATTEMPTS)."
  type        = number
  default     = 10

  validation {
    condition     = var.max_attempts >= 1 && var.max_attempts <= 1000000 && floor(var.max_attempts) == var.max_attempts
    error_message = "A job needs 1 to 1,000,000 attempts."
  }
}

variable "done_ttl_seconds" {
  description = "How long a done claim is kept at least (DEDUP_TTL_SECONDS). An event that comes later runs its job again."
  type        = number
  default     = 2764800

  validation {
    # A message may wait 14 days in the dead-letter queue before somebody moves it back, which makes it a new one. The
    # function refuses less, whatever retention_seconds is:
    # https://docs.aws.amazon.com/AWSSimpleQueueService/latest/SQSDeveloperGuide/sqs-configure-dead-letter-queue-redrive.html
    condition     = var.done_ttl_seconds >= 2419200
    error_message = "done_ttl_seconds (${var.done_ttl_seconds}) must be at least 2,419,200: 14 days in the queues, and, moved back as a new message, 14 days once more."
  }
}

variable "sweep_schedule" {
  description = "How often claims that nobody redelivers are handed out again: an expression of EventBridge Scheduler."
  type        = string
  default     = "rate(5 minutes)"

  validation {
    condition     = can(regex("^(rate|cron)\\(.+\\)$", var.sweep_schedule))
    error_message = "sweep_schedule must be rate(…) or cron(…)."
  }
}

# The queue.

variable "visibility_seconds" {
  description = "How long a received message is hidden from others. Null: six times the timeout and the batching window, as AWS recommends. At least the timeout."
  type        = number
  default     = null
}

variable "max_receives" {
  description = "How often a message is received before it is moved to the dead-letter queue."
  type        = number
  default     = 20

  validation {
    condition     = var.max_receives >= 2 && var.max_receives <= 1000
    error_message = "max_receives must be 2 to 1,000."
  }
}

variable "retention_seconds" {
  description = "How long a message waits in the queue. Those in the dead-letter queue wait 14 days from when they were sent: people have at least the difference to look at them."
  type        = number
  default     = 864000

  validation {
    condition     = var.retention_seconds >= 3600 && var.retention_seconds < 1209600
    error_message = "Messages must be kept for at least 3,600 seconds, and for less than 1,209,600, as the dead-letter queue keeps them."
  }
}

variable "batch_size" {
  description = "Messages given to one invocation. More than one is for short jobs: all of a batch must fit into the timeout."
  type        = number
  default     = 1

  validation {
    condition     = var.batch_size >= 1 && (var.batch_size <= 10 || var.batching_window_seconds >= 1) && var.batch_size <= 10000
    error_message = "A batch has 1 to 10 messages, or up to 10,000 with a batching window of at least a second."
  }
}

variable "batching_window_seconds" {
  description = "How long messages are gathered for a batch."
  type        = number
  default     = 0

  validation {
    condition     = var.batching_window_seconds >= 0 && var.batching_window_seconds <= 300
    error_message = "The batching window must be 0 to 300 seconds."
  }
}

variable "max_concurrency" {
  description = "Invocations that the queue may start side by side, out of those that all functions of the account share. Null: 100, or reserved_concurrency if that is less."
  type        = number
  default     = null

  validation {
    condition     = var.max_concurrency == null ? true : var.max_concurrency >= 2 && var.max_concurrency <= 1000
    error_message = "max_concurrency must be 2 to 1,000, or null."
  }

  validation {
    # https://docs.aws.amazon.com/lambda/latest/dg/services-sqs-scaling.html
    condition     = var.max_concurrency == null ? true : var.reserved_concurrency == -1 || var.max_concurrency <= var.reserved_concurrency
    error_message = "max_concurrency (${coalesce(var.max_concurrency, 0)}) must be at most reserved_concurrency (${var.reserved_concurrency}): what the queue starts beyond it is throttled, and ends in the dead-letter queue."
  }
}

variable "poll" {
  description = "Whether the function takes messages from the queue. False: they wait there."
  type        = bool
  default     = true
}

# Alarms.

variable "alarm_topic_arns" {
  description = "ARNs of SNS topics that are told of alarms."
  type        = list(string)
  default     = []
}
