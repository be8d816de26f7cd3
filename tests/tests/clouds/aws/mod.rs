//! What is Amazon's: the function, fed as Lambda feeds it, the program on DynamoDB and S3, and `deploy/aws`.

mod building;
mod deliveries;
mod deploy;
mod deployed;
mod endings;
mod envelopes;
mod program;
mod races;
