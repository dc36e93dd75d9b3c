# The image of a release, with the program that deploy/release.sh has built. It equals the image of
# deploy/Dockerfile, which builds the program in a container.
FROM scratch
COPY courier /courier
# A new volume gets the owner of this directory.
COPY --chown=65532:65532 data /data
USER 65532:65532
ENV COURIER_SPOOL_DIR=/data/spool
ENTRYPOINT ["/courier"]
CMD ["--help"]
