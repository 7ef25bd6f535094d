"""What a campaign counts on: tags with their steps, and the name of the snowflake ids in histories."""

# Small steps refill all the time, big ones are what the many ids of ranges need.
TAGS = {"small": 10, "middle": 1000, "big": 100000}
CLUSTER = "snowflake"
