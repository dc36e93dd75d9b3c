# The image of a release, which goreleaser fills with the program that it has built. It equals the
# image of deploy/Dockerfile, which builds the program in a container.
FROM scratch
COPY courier /courier
# A new volume gets the owner of this directory.
COPY --chown=65532:65532 image/data /data
USER 65532:65532
ENV COURIER_SPOOL_DIR=/data/spool
ENTRYPOINT ["/courier"]
CMD ["--help"]
